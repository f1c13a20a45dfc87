// Sums of products named by indices, against one loop over every index.
#include <cmath>
#include <functional>
#include <map>

#include "ops/conformance.h"
#include "tl/ops/matmul.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Einsum : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Einsum);

struct Reference {
  Host result;
  double scale = 0;
};

// Equations without "...": one loop over all indices.
Reference reference(const std::string& equation, const std::vector<Host>& operands) {
  const std::size_t arrow = equation.find("->");
  const std::string output = equation.substr(arrow + 2);
  std::vector<std::string> terms{""};
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  std::map<char, std::int64_t> size;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    for (std::size_t d = 0; d < terms[t].size(); ++d) {
      size[terms[t][d]] = operands[t].shape[static_cast<int>(d)];
    }
  }
  Reference out;
  std::int64_t count = 1;
  for (const char c : output) {
    out.result.shape.push_back(size[c]);
    count *= size[c];
  }
  std::vector<double> magnitude(static_cast<std::size_t>(count), 0);
  out.result.values.assign(static_cast<std::size_t>(count), 0);
  std::map<char, std::int64_t> at;
  const auto offset = [&](const std::string& labels) {
    std::int64_t position = 0;
    for (const char c : labels) position = position * size[c] + at[c];
    return static_cast<std::size_t>(position);
  };
  std::vector<char> names;
  for (const auto& [name, n] : size) names.push_back(name);
  const std::function<void(std::size_t)> loop = [&](std::size_t depth) {
    if (depth < names.size()) {
      for (std::int64_t i = 0; i < size[names[depth]]; ++i) {
        at[names[depth]] = i;
        loop(depth + 1);
      }
      return;
    }
    double x = 1;
    for (std::size_t t = 0; t < terms.size(); ++t) x *= operands[t].values[offset(terms[t])];
    out.result.values[offset(output)] += x;
    magnitude[offset(output)] += std::abs(x);
  };
  loop(0);
  for (const double m : magnitude) out.scale = std::max(out.scale, m);
  return out;
}

struct Case {
  std::string equation;
  std::vector<Shape> shapes;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"ij->ij", {{3, 4}}},
      {"ij->ji", {{3, 4}}},
      {"ij->i", {{3, 4}}},
      {"ij->j", {{3, 4}}},
      {"ij->", {{3, 4}}},
      {"ii->i", {{4, 4}}},
      {"ii->", {{4, 4}}},
      {"iij->ij", {{3, 3, 5}}},
      {"iji->j", {{3, 5, 3}}},
      {"ijk->kji", {{2, 3, 4}}},
      {"i->", {{0}}},
      {"->", {{}}},
      {"i,i->", {{7}, {7}}},
      {"i,i->i", {{7}, {7}}},
      {"i,j->ij", {{3}, {4}}},
      {"i,j->ji", {{3}, {4}}},
      {",i->i", {{}, {4}}},
      {"ij,jk->ik", {{5, 6}, {6, 7}}},
      {"ij,kj->ik", {{5, 6}, {7, 6}}},
      {"ji,jk->ki", {{6, 5}, {6, 7}}},
      {"ij,j->i", {{5, 6}, {6}}},
      {"ij,ij->ij", {{5, 6}, {5, 6}}},
      {"ij,ij->", {{5, 6}, {5, 6}}},
      {"ij,ij->j", {{5, 6}, {5, 6}}},
      {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}},
      {"bij,jk->bik", {{2, 3, 4}, {4, 5}}},
      {"bij,bkj->bik", {{2, 3, 4}, {2, 5, 4}}},
      {"bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}},
      {"bqhd,bkhd->bhqk", {{2, 4, 3, 5}, {2, 6, 3, 5}}},
      {"ijkl,klmn->ijmn", {{2, 3, 4, 2}, {4, 2, 3, 2}}},
      {"ijkl,jlm->imk", {{2, 3, 4, 2}, {3, 2, 5}}},
      {"ij,jk,kl->il", {{3, 4}, {4, 5}, {5, 2}}},
      {"i,j,k->ijk", {{2}, {3}, {4}}},
      {"ij,ik,il->jkl", {{3, 2}, {3, 4}, {3, 5}}},
      {"ab,bc,cd,de->ae", {{2, 3}, {3, 4}, {4, 2}, {2, 5}}},
      {"ii,ij->j", {{4, 4}, {4, 3}}},
      {"ij,kl->", {{2, 3}, {4, 5}}},
      {"ij,jk->", {{2, 3}, {3, 5}}},
      {"aA,AB->aB", {{2, 3}, {3, 4}}},
      {"ij,jk->ik", {{2, 0}, {0, 3}}},
      {"ij,jk->ik", {{0, 2}, {2, 3}}},
      {"bi,bi->b", {{70, 33}, {70, 33}}},
      {"ij,jk->ik", {{70, 33}, {33, 65}}},
  };
  return all;
}

TEST_P(Einsum, AgreesWithOneLoopOverEveryIndex) {
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::F32, DType::F64, DType::I32}) {
      std::vector<Host> values;
      for (const Shape& shape : c.shapes) {
        values.push_back(uniform_for(dtype, shape, is_int(dtype) ? -9 : -1, is_int(dtype) ? 9 : 1,
                                     values.size() + 1));
      }
      const Reference want = reference(c.equation, values);
      for (const Arrangement how : kArrangements) {
        std::vector<Tensor> tensors;
        for (const Host& v : values) tensors.push_back(arrange(v, dtype, how, device()));
        const Tensor got = einsum(c.equation, tensors);
        expect_close("einsum", got, dtype, want.result, {8, want.scale},
                     join(c.equation, " ", dtype, " ", name(how)));
        EXPECT_TRUE(got.is_contiguous());
      }
    }
  }
}

TEST_P(Einsum, TakesEveryDtype) {
  for (const DType dtype : kNumbers) {
    const Host a = uniform_for(dtype, {4, 9}, is_int(dtype) ? -5 : -1, is_int(dtype) ? 5 : 1, 1);
    const Host b = uniform_for(dtype, {9, 5}, is_int(dtype) ? -5 : -1, is_int(dtype) ? 5 : 1, 2);
    const Reference want = reference("ij,jk->ki", {a, b});
    if (dtype == DType::U8) {
      for (const double x : want.result.values) ASSERT_LT(x, 256);
    }
    const Tensor ta = contiguous_on(a, dtype, device()), tb = contiguous_on(b, dtype, device());
    expect_close("einsum", einsum("ij,jk->ki", {ta, tb}), dtype, want.result,
                 {dtype == DType::F32 || dtype == DType::F64 ? 4 : 0.502, want.scale}, join(dtype));
  }
}

TEST_P(Einsum, EllipsisBroadcastsTheDimensionsInFront) {
  const DType dtype = DType::F32;
  const Host a = uniform_for(dtype, {2, 1, 4, 5}, -1, 1, 3),
             b = uniform_for(dtype, {3, 5, 6}, -1, 1, 4);
  const Tensor ta = contiguous_on(a, dtype, device()), tb = contiguous_on(b, dtype, device());
  const Host want = host_of(matmul(ta, tb));
  expect_close("einsum", einsum("...ij,...jk->...ik", {ta, tb}), dtype, want, {8, 4});
  expect_close("einsum", einsum("...ij,...jk", {ta, tb}), dtype, want, {8, 4});
  expect_equal("einsum", einsum("...ij->...ji", {ta}), contiguous(ta.t()));
  EXPECT_EQ(einsum("i...->...i", {ta}).shape(), (Shape{1, 4, 5, 2}));
  EXPECT_EQ(einsum("...->...", {ta}).shape(), (Shape{2, 1, 4, 5}));
  EXPECT_EQ(einsum("...->", {ta}).shape(), (Shape{}));
  EXPECT_EQ(
      einsum("...ii->...i", {contiguous_on(uniform({2, 3, 3}, 0, 1, 5), dtype, device())}).shape(),
      (Shape{2, 3}));
}

TEST_P(Einsum, ImpliesAnAlphabeticalOutput) {
  const DType dtype = DType::F32;
  const Host a = uniform_for(dtype, {3, 4}, -1, 1, 6);
  const Tensor ta = contiguous_on(a, dtype, device());
  expect_equal("einsum", einsum("ba", {ta}), contiguous(ta.t()));
  EXPECT_EQ(einsum("bA", {ta}).shape(), (Shape{4, 3}));  // capitals come first
  EXPECT_EQ(einsum(" i j , j k ", {ta, ta.t()}).shape(), (Shape{3, 3}));
  EXPECT_EQ(einsum("ii", {ta.narrow(1, 0, 3)}).shape(), (Shape{}));
}

TEST_P(Einsum, RefusesWhatDoesNotFit) {
  const auto f = [&](const Shape& shape) { return Tensor::zeros(shape, DType::F32, device()); };
  expect_error(ErrorKind::BadArgument, "einsum: 'ij,jk->ik': 2 terms for 1 operands",
               [&] { einsum("ij,jk->ik", {f({2, 3})}); });
  expect_error(ErrorKind::ShapeMismatch,
               "einsum: 'ijk->': 3 indices for an operand of shape (2, 3)",
               [&] { einsum("ijk->", {f({2, 3})}); });
  expect_error(ErrorKind::ShapeMismatch, "einsum: 'i->': 1 indices for an operand of shape (2, 3)",
               [&] { einsum("i->", {f({2, 3})}); });
  expect_error(ErrorKind::ShapeMismatch, "index 'j' has size 3 in one operand and 4 in another",
               [&] { einsum("ij,jk->ik", {f({2, 3}), f({4, 5})}); });
  expect_error(ErrorKind::ShapeMismatch, "index 'i' has size 2 in one operand and 3 in another",
               [&] { einsum("ii->i", {f({2, 3})}); });
  expect_error(ErrorKind::ShapeMismatch, "a dimension of '...' has size 2",
               [&] { einsum("...i,...i->...", {f({2, 3}), f({4, 3})}); });
  expect_error(ErrorKind::BadArgument, "no operand has the output's index 'z'",
               [&] { einsum("ij->iz", {f({2, 3})}); });
  expect_error(ErrorKind::BadArgument, "the output names index 'i' twice",
               [&] { einsum("ij->ii", {f({2, 3})}); });
  expect_error(ErrorKind::BadArgument, "'1' is not an index",
               [&] { einsum("i1->i", {f({2, 3})}); });
  expect_error(ErrorKind::BadArgument, "'...' stands twice",
               [&] { einsum("...i...->i", {f({2, 3})}); });
  expect_error(ErrorKind::BadArgument, "more than 8 dimensions", [&] {
    einsum("abcde,fghij->abcdefghij", {f({1, 1, 1, 1, 1}), f({1, 1, 1, 1, 1})});
  });
  const Tensor h = Tensor::zeros({3, 2}, DType::F16, device());
  expect_error(ErrorKind::DTypeMismatch, "einsum: one operand is f32, another f16",
               [&] { einsum("ij,jk->ik", {f({2, 3}), h}); });
  const Tensor b = Tensor::zeros({3, 3}, DType::Bool, device());
  expect_unsupported("einsum", DType::Bool, device(), [&] { einsum("ij->ji", {b}); });
}

TEST_P(Einsum, MultipliesAttentionWithoutCopiesOnADevice) {
  // The scores of attention from (batch, time, heads, size): both operands are read as they lie.
  const Tensor q =
      contiguous_on(uniform_for(DType::F32, {2, 8, 3, 16}, -1, 1, 7), DType::F32, device());
  einsum("bqhd,bkhd->bhqk", {q, q});
  const DriverCalls before = device().driver_calls();
  einsum("bqhd,bkhd->bhqk", {q, q});
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
  if (device().is_gpu()) {
    EXPECT_LE(after.launches - before.launches, 1u);
  }
}

TEST_P(Einsum, IsInTheTableOfOps) {
  const Tensor a = contiguous_on(uniform({2, 3}, -1, 1, 8), DType::F32, device());
  const std::vector<OpValue> arguments = {std::string("ij->ji"), std::vector<Tensor>{a}};
  expect_equal("einsum", call_op("einsum", arguments)[0], contiguous(a.t()));
}

}  // namespace
}  // namespace tl
