// Ops that move elements or order them, on every dtype of their row in the table: they must do with
// it what they do with f64, where the tests of their families look at shapes, layouts and values.
#include "ops/conformance.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"
#include "tl/ops/matmul.h"
#include "tl/ops/random.h"
#include "tl/ops/sort.h"
#include "tl/ops/table.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class EveryDtype : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(EveryDtype);

struct Case {
  std::string_view op;
  Tensor (*call)(const Tensor& x);  // x (3, 4)
  double units = 0;                 // error allowed to floats
};

Tensor ids_like(const Tensor& x, std::initializer_list<std::int64_t> ids, const Shape& shape) {
  return Tensor::from<std::int64_t>(ids, shape, x.device());
}
Tensor mask_like(const Tensor& x) {
  return Tensor::from<std::uint8_t>({1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1}, {3, 4}, x.device());
}

const Case kCases[] = {
    {"contiguous", [](const Tensor& x) { return contiguous(x.t()); }},
    {"reshape", [](const Tensor& x) { return reshape(x.t(), {2, -1}); }},
    {"flatten", [](const Tensor& x) { return flatten(x.t()); }},
    {"embedding", [](const Tensor& x) { return embedding(x, ids_like(x, {2, 0, 2, 1}, {2, 2})); }},
    {"take", [](const Tensor& x) { return take(x.t(), ids_like(x, {11, 0, 5}, {3})); }},
    {"take_along", [](const Tensor& x) { return take_along(x, 1, ids_like(x, {3, 0}, {1, 2})); }},
    {"masked_select", [](const Tensor& x) { return masked_select(x, mask_like(x)); }},
    {"masked_scatter",
     [](const Tensor& x) { return masked_scatter(x, mask_like(x), flip(flatten(x), {0})); }},
    {"nonzero", [](const Tensor& x) { return nonzero(x); }},
    {"stack",
     [](const Tensor& x) {
       const Tensor list[] = {x, flip(x, {0}), x};
       return stack(list, 1);
     }},
    {"repeat", [](const Tensor& x) { return repeat(x, {2, 3}); }},
    {"repeat_interleave", [](const Tensor& x) { return repeat_interleave(x, 3, 1); }},
    {"roll", [](const Tensor& x) { return roll(x, 5, 1); }},
    {"rot90", [](const Tensor& x) { return rot90(x); }},
    {"meshgrid",
     [](const Tensor& x) {
       const Tensor vectors[] = {x.get(0), x.get(1)};
       const std::vector<Tensor> grid = meshgrid(vectors);
       return stack(grid, 0);
     }},
    {"argsort", [](const Tensor& x) { return argsort(x, 0, true); }},
    {"sort_last_dim", [](const Tensor& x) { return sort_last_dim(x, false).first; }},
    {"arg_sort_last_dim", [](const Tensor& x) { return arg_sort_last_dim(x); }},
    // Sums below 255, which wrap nowhere.
    {"bmm", [](const Tensor& x) { return bmm(x.unsqueeze(0), x.t().unsqueeze(0)); }, 2},
    {"round_to", [](const Tensor& x) { return round_to(x, 1); }, 1},
};

TEST_P(EveryDtype, IsMovedAndOrderedAsF64Is) {
  for (const Case& c : kCases) {
    const OpRow* row = find_op(c.op);
    ASSERT_NE(row, nullptr) << c.op;
    for (const DType dtype : kDTypes) {
      if (!row->dtypes.has(dtype)) continue;
      const Host x = uniform_for(dtype, {3, 4}, 0, 7, 31);
      const Tensor wanted = c.call(contiguous_on(x, DType::F64, Device::cpu()));
      for (const Arrangement how : kArrangements) {
        const Tensor got = c.call(arrange(x, dtype, how, device()));
        const bool same = wanted.dtype() == DType::F64;  // as the operand, else indices
        expect_close({c.op, dtype}, got, same ? dtype : wanted.dtype(), host_of(wanted), {c.units},
                     describe(c.op, dtype, x.shape, how));
      }
    }
  }
}

TEST_P(EveryDtype, TravelsToADevice) {
  for (const DType dtype : kDTypes) {
    const Host x = uniform_for(dtype, {5, 7}, 0, 100, 32);
    for (const Arrangement how : kArrangements) {
      const Tensor there = to(arrange(x, dtype, how, Device::cpu()), device());
      EXPECT_EQ(there.location(), device().location());
      expect_close("to", there, dtype, x, {0}, describe("to", dtype, x.shape, how));
      expect_close("to", to(arrange(x, dtype, how, device()), Device::cpu()), dtype, x, {0},
                   describe("to", dtype, x.shape, how));
    }
  }
}

// The numbers do not depend on the device.
TEST_P(EveryDtype, IsDrawnAsOnTheCpu) {
  const auto check = [&](std::string_view op, DType dtype, const auto& draw) {
    const auto on = [&](const Device& where) {
      where.set_seed(5);
      return draw(where);
    };
    const Tensor here = on(device());
    expect_equal({op, dtype}, here, on(Device::cpu()), join(op, " ", dtype));
  };
  for (const DType dtype : kDTypes) {
    check("bernoulli", dtype,
          [&](const Device& where) { return bernoulli(0.4, {500}, dtype, where); });
  }
  for (const DType dtype : kFloats) {
    const auto like = [&](const Device& where) { return ones({500}, dtype, where); };
    check("dropout", dtype, [&](const Device& where) { return dropout(like(where), 0.5); });
    check("rand_like", dtype, [&](const Device& where) { return rand_like(like(where)); });
    check("randn_like", dtype, [&](const Device& where) { return randn_like(like(where)); });
  }
}

}  // namespace
}  // namespace tl
