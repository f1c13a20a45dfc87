// Every op on every dtype of its row and, between them, every kernel, on inputs that are as small
// as they can be: what the CPU gives is right, as the tests of the families say. Short enough for
// machine code that runs in an emulator, where those would take days.
#include <cmath>

#include "ops/conformance.h"
#include "ops/op_arguments.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Sweep : public OnEveryDevice {
 protected:
  void SetUp() override {
    if (device().is_cpu()) GTEST_SKIP() << "compares GPUs with the CPU";
  }
};
TL_ON_EVERY_DEVICE(Sweep);

// The next of a sequence of small tensors, the same on every device: floats from 0.25 to 1.5,
// integers from 1 to 6, indices 0 and 1.
struct Next {
  Device device;
  int calls = 0;

  Tensor operator()(const Shape& shape, DType dtype) {
    ++calls;
    Host host{shape, {}};
    for (std::int64_t i = 0; i < Layout(shape).count(); ++i) {
      const auto n = static_cast<double>((i * 7 + i / 5 + calls * 3) % 6);
      host.values.push_back(dtype == DType::I64 || dtype == DType::Bool ? std::fmod(n, 2)
                            : is_float(dtype)                           ? (n + 1) / 4
                                                                        : n + 1);
    }
    return contiguous_on(host, dtype, device);
  }
};

struct Outcome {
  std::vector<Tensor> results;
  std::string error;
};

Outcome outcome(std::string_view op, const std::vector<OpValue>& arguments) {
  try {
    return {call_op(op, arguments), {}};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

// Floats may differ by some roundings of the largest number around: sums have another order.
void expect_same(const Outcome& got, const Outcome& wanted, DType dtype, const std::string& what,
                 double units = 8) {
  ASSERT_EQ(got.error.empty(), wanted.error.empty()) << what << got.error << wanted.error;
  ASSERT_EQ(got.results.size(), wanted.results.size()) << what;
  for (std::size_t r = 0; r < got.results.size(); ++r) {
    const Tensor &a = got.results[r], &b = wanted.results[r];
    ASSERT_EQ(a.shape(), b.shape()) << what;
    ASSERT_EQ(a.dtype(), b.dtype()) << what;
    const Host left = host_of(a), right = host_of(b);
    double scale = 0;
    for (const double x : right.values) {
      if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
    }
    const double bound = is_float(a.dtype()) ? units * epsilon(a.dtype()) * scale : 0;
    for (std::size_t i = 0; i < left.values.size(); ++i) {
      const double x = left.values[i], y = right.values[i];
      const bool same = x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= bound;
      ASSERT_TRUE(same) << what << ": result " << r << " has " << x << " at " << i << ", the CPU "
                        << y << " (" << dtype << ")";
    }
  }
}

TEST_P(Sweep, EveryOpOnEveryDtypeGivesWhatTheCpuGives) {
  for (const OpRow& row : op_table()) {
    for (const DType dtype : kDTypes) {
      if (!row.dtypes.has(dtype)) continue;
      const auto on = [&](const Device& where) {
        where.set_seed(3);
        return outcome(row.name, Arguments(where, 3, dtype, Next{where}).arguments(row));
      };
      const Outcome wanted = on(Device::cpu());
      expect_same(on(device()), wanted, dtype, join(row.name, " "));
      EXPECT_TRUE(wanted.error.empty()) << row.name << " " << dtype << ": " << wanted.error;
    }
  }
}

// Indices spread over [0, size).
Tensor spread(const Shape& shape, std::int64_t size, const Device& device) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < Layout(shape).count(); ++i) ids.push_back((i * 37 + i / 9) % size);
  return Tensor::from<std::int64_t>(ids, shape, device);
}

// What it takes to reach the kernels for other sizes and layouts than the smallest.
struct Larger {
  std::string_view op;
  std::vector<OpValue> (*arguments)(Next& next, DType dtype);
};
const Larger kLarger[] = {
    // columns, and rows that several blocks share
    {"sum", [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 3}, t), Dims{0}}; }},
    {"sum", [](Next& x, DType t) -> std::vector<OpValue> { return {x({9000}, t)}; }},
    {"prod", [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 3}, t), Dims{0}}; }},
    {"prod", [](Next& x, DType t) -> std::vector<OpValue> { return {x({9000}, t)}; }},
    {"var", [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 3}, t), Dims{0}}; }},
    {"var", [](Next& x, DType t) -> std::vector<OpValue> { return {x({9000}, t)}; }},
    {"max", [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 3}, t), Dims{0}}; }},
    {"max", [](Next& x, DType t) -> std::vector<OpValue> { return {x({9000}, t)}; }},
    {"argmax", [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 3}, t), Scalar(0)}; }},
    {"argmax", [](Next& x, DType t) -> std::vector<OpValue> { return {x({9000}, t), Scalar(0)}; }},
    {"any", [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 3}, t), Dims{0}}; }},
    {"any", [](Next& x, DType t) -> std::vector<OpValue> { return {x({9000}, t)}; }},
    {"logsumexp",
     [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 3}, t), Dims{0}}; }},
    {"logsumexp", [](Next& x, DType t) -> std::vector<OpValue> { return {x({9000}, t), Dims{0}}; }},
    {"norm",
     [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 3}, t), Dims{0}, Scalar(2)}; }},
    {"norm",
     [](Next& x, DType t) -> std::vector<OpValue> { return {x({9000}, t), Dims{0}, Scalar(2)}; }},
    {"norm",
     [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 3}, t), Dims{0}, Scalar(3)}; }},
    {"norm",
     [](Next& x, DType t) -> std::vector<OpValue> { return {x({9000}, t), Dims{0}, Scalar(3)}; }},
    {"cumsum", [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 3}, t), Scalar(0)}; }},
    {"cumprod", [](Next& x, DType t) -> std::vector<OpValue> { return {x({9, 3}, t), Scalar(0)}; }},
    // rows that a block keeps, and longer ones
    {"softmax",
     [](Next& x, DType t) -> std::vector<OpValue> { return {x({2, 1200}, t), Scalar(1)}; }},
    {"softmax",
     [](Next& x, DType t) -> std::vector<OpValue> { return {x({1, 4200}, t), Scalar(1)}; }},
    {"softmax",
     [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 33}, t), Scalar(0)}; }},
    {"layer_norm", [](Next& x, DType t) -> std::vector<OpValue> { return {x({2, 1200}, t)}; }},
    {"layer_norm", [](Next& x, DType t) -> std::vector<OpValue> { return {x({1, 4200}, t)}; }},
    {"sort", [](Next& x, DType t) -> std::vector<OpValue> { return {x({9000}, t)}; }},
    // choices by conditions of every size
    {"where",
     [](Next& x, DType t)
         -> std::vector<OpValue> { return {x({3, 4}, DType::I16), x({3, 4}, t), x({3, 4}, t)}; }},
    {"where",
     [](Next& x, DType t)
         -> std::vector<OpValue> { return {x({3, 4}, DType::I32), x({3, 4}, t), x({3, 4}, t)}; }},
    {"where",
     [](Next& x, DType t)
         -> std::vector<OpValue> { return {x({3, 4}, DType::I64), x({3, 4}, t), x({3, 4}, t)}; }},
    // moves
    {"contiguous", [](Next& x, DType t) -> std::vector<OpValue> { return {x({40, 33}, t).t()}; }},
    {"flip", [](Next& x, DType t) -> std::vector<OpValue> { return {x({4, 64}, t), Dims{0}}; }},
    {"scatter",
     [](Next& x, DType t) -> std::
                              vector<OpValue> {
                                return {x({3, 33000}, t), Scalar(0),
                                        spread({2, 33000}, 3, x.device), x({2, 33000}, t)};
                              }},
    {"gather",
     [](Next& x, DType t)
         -> std::vector<
             OpValue> { return {x({64, 300}, t), Scalar(1), spread({64, 256}, 300, x.device)}; }},
    // sums at indices: exact bins, sorted keys, lines
    {"scatter_add",
     [](Next& x, DType t) -> std::
                              vector<OpValue> {
                                return {x({50}, t), Scalar(0), spread({600}, 50, x.device),
                                        x({600}, t)};
                              }},
    {"scatter_add",
     [](Next& x, DType t) -> std::
                              vector<OpValue> {
                                return {x({700}, t), Scalar(0), spread({500}, 300, x.device),
                                        x({500}, t)};
                              }},
    {"scatter_add",
     [](Next& x, DType t) -> std::
                              vector<OpValue> {
                                return {x({64, 90}, t), Scalar(1), spread({64, 70}, 90, x.device),
                                        x({64, 70}, t)};
                              }},
    // products
    {"matmul",
     [](Next& x, DType t) -> std::vector<OpValue> { return {x({33, 40}, t), x({40, 35}, t)}; }},
    {"matmul",
     [](Next& x, DType t) -> std::vector<OpValue> { return {x({130, 20}, t), x({20, 132}, t)}; }},
    {"conv2d",
     [](Next& x,
        DType t) -> std::vector<OpValue> { return {x({1, 8, 10, 10}, t), x({16, 8, 3, 3}, t)}; }},
    {"conv_transpose2d",
     [](Next& x,
        DType t) -> std::vector<OpValue> { return {x({1, 8, 10, 10}, t), x({8, 16, 3, 3}, t)}; }},
    // many queries, wide heads, keys in parts
    {"attention",
     [](Next& x, DType t) -> std::
                              vector<OpValue> {
                                return {x({1, 2, 40, 16}, t), x({1, 2, 40, 16}, t),
                                        x({1, 2, 40, 16}, t)};
                              }},
    {"attention",
     [](Next& x, DType t) -> std::
                              vector<OpValue> {
                                return {x({1, 1, 40, 80}, t), x({1, 1, 40, 80}, t),
                                        x({1, 1, 40, 80}, t)};
                              }},
    {"attention",
     [](Next& x, DType t) -> std::
                              vector<OpValue> {
                                return {x({1, 1, 1, 16}, t), x({1, 1, 900, 16}, t),
                                        x({1, 1, 900, 16}, t)};
                              }},
};

TEST_P(Sweep, LargerShapesGiveWhatTheCpuGives) {
  for (const Larger& larger : kLarger) {
    const OpRow* row = find_op(larger.op);
    ASSERT_NE(row, nullptr) << larger.op;
    for (const DType dtype : kDTypes) {
      if (!row->dtypes.has(dtype) && larger.op != "where") continue;
      const auto on = [&](const Device& where) {
        Next next{where};
        return outcome(larger.op, larger.arguments(next, dtype));
      };
      const Outcome wanted = on(Device::cpu());
      // Roundings of the scores, which go up to 40 here, are multiplied by them.
      const double units = larger.op == "attention" ? 80 : 8;
      expect_same(on(device()), wanted, dtype, join(larger.op, " "), units);
      EXPECT_TRUE(wanted.error.empty()) << larger.op << " " << dtype << ": " << wanted.error;
    }
  }
}

TEST_P(Sweep, EveryDtypeBecomesEveryOther) {
  for (const DType from : kDTypes) {
    for (const DType to_type : kDTypes) {
      const auto on = [&](const Device& where) {
        return Outcome{{to_dtype(Next{where}({3, 7}, from).t(), to_type)}, {}};
      };
      expect_same(on(device()), on(Device::cpu()), to_type, join(from, " to "));
    }
  }
}

}  // namespace
}  // namespace tl
