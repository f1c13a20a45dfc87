// What holds for every op: no elements, no memory, several threads, several handles and devices.
#include <cmath>
#include <map>
#include <thread>

#include "ops/conformance.h"
#include "runtime/driver/table.h"
#include "support/faulty_driver.h"
#include "tl/ops/affine.h"
#include "tl/ops/binary.h"
#include "tl/ops/conv.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"
#include "tl/ops/softmax.h"
#include "tl/ops/sort.h"
#include "tl/ops/table.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"
#include "tl/runtime/launch.h"
#include "tl/runtime/module_store.h"

namespace tl {
namespace {

using namespace test;

class EveryOp : public OnEveryDevice {
 protected:
  Tensor zeros(const Shape& shape, DType dtype = DType::F32) const {
    return Tensor::zeros(shape, dtype, device());
  }
};
TL_ON_EVERY_DEVICE(EveryOp);

// ---- no elements

// The parameters of a signature that have no default: "(x, dim = -1)" has x.
std::vector<std::string> needed_parameters(std::string_view signature) {
  std::vector<std::string> names;
  std::string name;
  bool in_default = false;
  int depth = 0;
  for (const char c : signature.substr(1)) {  // past the bracket
    if (depth == 0 && (c == ',' || c == ')')) {
      if (!in_default && !name.empty()) names.push_back(name);
      name.clear();
      in_default = false;
      continue;
    }
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == '=') in_default = true;
    if (c != ' ' && !in_default) name += c;
  }
  return names;
}

// Arguments without elements by the name of the parameter, and those of ops that want more of their
// shapes.
struct Empty {
  explicit Empty(const Device& on) : device(on) {}

  Tensor zeros(const Shape& shape, DType dtype = DType::F32) const {
    return Tensor::zeros(shape, dtype, device);
  }

  std::vector<OpValue> arguments(const OpRow& row) const {
    const Tensor ids = zeros({0}, DType::I64);
    const Tensor x = zeros({0, 4}, row.dtypes.has(DType::F32) ? DType::F32 : DType::I32);
    const Tensor line = zeros({0, 3, 8}), plane = zeros({0, 3, 8, 8}), box = zeros({0, 3, 8, 8, 8});
    const Tensor heads = zeros({0, 2, 5, 4}), table = zeros({5, 2});
    const Dims two{2};
    using List = std::vector<Tensor>;
    const std::map<std::string_view, std::vector<OpValue>> special = {
        {"conv1d", {line, zeros({4, 3, 2})}},
        {"conv2d", {plane, zeros({4, 3, 2, 2})}},
        {"conv3d", {box, zeros({4, 3, 2, 2, 2})}},
        {"conv_transpose1d", {line, zeros({3, 4, 2})}},
        {"conv_transpose2d", {plane, zeros({3, 4, 2, 2})}},
        {"conv_transpose3d", {box, zeros({3, 4, 2, 2, 2})}},
        {"avg_pool1d", {line, two}},
        {"max_pool1d", {line, two}},
        {"avg_pool2d", {plane, two}},
        {"max_pool2d", {plane, two}},
        {"adaptive_avg_pool2d", {plane, two}},
        {"global_avg_pool2d", {plane}},
        {"global_max_pool2d", {plane}},
        {"upsample_nearest1d", {line, Scalar(5)}},
        {"interpolate1d", {line, Scalar(5)}},
        {"upsample_nearest2d", {plane, Scalar(5), Scalar(3)}},
        {"interpolate2d", {plane, Scalar(5), Scalar(3)}},
        {"upsample_bilinear2d", {plane, Scalar(5), Scalar(3)}},
        {"upsample_bilinear2d_with_scale", {plane, Scalar(2), Scalar(0.5)}},
        {"pixel_shuffle", {zeros({0, 4, 3, 3}), Scalar(2)}},
        {"pixel_unshuffle", {plane, Scalar(2)}},
        {"attention", {heads, heads, heads}},
        {"rope", {heads, table, table}},
        {"rope_i", {heads, table, table}},
        {"rope_thd", {zeros({0, 5, 2, 4}), table, table}},
        {"matmul", {x, zeros({4, 3})}},
        {"bmm", {zeros({0, 2, 4}), zeros({0, 4, 3})}},
        {"dot", {zeros({0}), zeros({0})}},
        {"mv", {x, zeros({4})}},
        {"outer", {zeros({0}), zeros({4})}},
        {"linear", {x, zeros({3, 4})}},
        {"addmm", {zeros({3}), x, zeros({4, 3})}},
        {"einsum", {std::string("ij,kj->ik"), List{x, x}}},
        {"layer_norm_over", {x, Dims{4}}},
        {"group_norm", {x, Scalar(2)}},
        {"batch_norm", {x, zeros({4}), zeros({4})}},
        {"index_select", {x, Scalar(1), ids}},
        {"embedding", {zeros({0, 4}), ids}},
        {"gather", {x, Scalar(1), zeros({0, 2}, DType::I64)}},
        {"take_along", {x, Scalar(1), zeros({0, 2}, DType::I64)}},
        {"scatter", {x, Scalar(1), zeros({0, 2}, DType::I64), zeros({0, 2})}},
        {"scatter_value", {x, Scalar(1), zeros({0, 2}, DType::I64), Scalar(1)}},
        {"scatter_add", {x, Scalar(1), zeros({0, 2}, DType::I64), zeros({0, 2})}},
        {"index_add", {x, Scalar(1), ids, zeros({0, 0})}},
        {"index_copy", {x, Scalar(1), ids, zeros({0, 0})}},
        {"where", {zeros({0, 4}, DType::Bool), zeros({0, 4}), zeros({0, 4})}},
        {"arange", {Scalar(3), Scalar(3), Scalar(1), DType::F32, device}},
        {"linspace", {Scalar(0), Scalar(1), Scalar(0), DType::F32, device}},
        {"meshgrid", {List{zeros({0}), zeros({3})}}},
        {"slice_scatter", {x, zeros({0, 2}), Scalar(1), Scalar(1)}},
        {"cosine_similarity", {x, x}},
        // All of a tensor has no smallest element: along a dimension that has some.
        {"min", {x, Dims{1}}},
        {"max", {x, Dims{1}}},
        {"argmin", {x, Scalar(1)}},
        {"argmax", {x, Scalar(1)}},
    };
    if (const auto found = special.find(row.name); found != special.end()) return found->second;
    const std::map<std::string_view, OpValue> by_name = {
        {"x", x},
        {"a", x},
        {"b", x},
        {"target", x},
        {"logits", x},
        {"ids", ids},
        {"targets", ids},
        {"mask", zeros({0, 4}, DType::Bool)},
        {"src", zeros({0})},
        {"list", List{x, x}},
        {"shape", Dims{0, 4}},
        {"dims", Dims{1}},
        {"counts", Dims{2, 3}},
        {"before", Dims{0, 1}},
        {"after", Dims{0, 2}},
        {"dtype", DType::F32},
        {"device", device},
    };
    std::vector<OpValue> out;
    for (const std::string& name : needed_parameters(row.signature)) {
      const auto found = by_name.find(name);
      if (found != by_name.end()) {
        out.push_back(found->second);
      } else {
        out.emplace_back(Scalar(name == "n" ? 0 : 1));  // a number
      }
    }
    return out;
  }

  Device device;
};

TEST_P(EveryOp, TakesTensorsWithoutElements) {
  const Empty empty(device());
  int ops = 0;
  for (const OpRow& row : op_table()) {
    std::vector<OpValue> arguments = empty.arguments(row);
    if (row.name == "randint" || row.name == "bernoulli") {  // the range holds an integer
      arguments = row.name == "randint"
                      ? std::vector<OpValue>{Scalar(0), Scalar(5), Dims{0, 4}, DType::I32, device()}
                      : std::vector<OpValue>{Scalar(0.5), Dims{0, 4}, DType::F32, device()};
    }
    try {
      for (const Tensor& result : call_op(row.name, arguments)) {
        EXPECT_EQ(result.location(), device().location()) << row.name;
        EXPECT_EQ(host_of(result).count(), result.count()) << row.name;
        // Only pad and its kin make elements of nothing; scalars are reductions of it.
        for (const double value : host_of(result).values) {
          EXPECT_TRUE(value == 0 || value == 1 || std::isnan(value) || std::isinf(value))
              << row.name << " gave " << value;
        }
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << row.name << row.signature << ": " << error.what();
    }
    ++ops;
  }
  EXPECT_GT(ops, 190);
  device().synchronize();
}

// ---- no memory

// A driver that has no more, and a pool whose rooms of that size are all taken.
class NoMemory {
 public:
  NoMemory(const Device& device, std::int64_t bytes) : driver_(device.kind()) {
    device.synchronize();
    device.trim();
    driver_.fail_from(1, 1 << 20);
    try {
      for (;;) taken_.push_back(Tensor::uninitialized({bytes}, DType::U8, device));
    } catch (const OutOfMemory&) {
      return;
    }
  }

 private:
  std::vector<Tensor> taken_;
  FaultyDriver driver_;
};

TEST_P(EveryOp, ThatRunsOutOfMemorySaysSoAndLeavesItsOperandsAlone) {
  const std::int64_t n = 1 << 10;
  const Host values = uniform({n, n}, -1, 1, 1);
  const Tensor x = contiguous_on(values, DType::F32, device());
  const Tensor ids = arange(n, DType::I64, device());
  const Tensor lines = ids.broadcast_as({n, n});
  const Tensor image = x.view({1, 16, 256, 256});
  const Tensor kernel = contiguous_on(uniform({16, 16, 3, 3}, -1, 1, 2), DType::F32, device());
  const std::pair<const char*, std::function<void()>> cases[] = {
      {"add", [&] { add(x, x); }},
      {"exp", [&] { exp(x.t()); }},
      {"copy", [&] { copy(x.t()); }},
      {"to_dtype", [&] { to_dtype(x, DType::F64); }},
      {"cat", [&] { cat({x, x}, 0); }},
      {"matmul", [&] { matmul(x, x); }},
      {"softmax", [&] { softmax(x); }},
      {"sort", [&] { sort(x); }},
      {"sum", [&] { sum(x.broadcast_left({1}), {0}); }},
      {"where", [&] { where(lines, x, 0); }},
      {"index_select", [&] { index_select(x, 0, ids); }},
      {"gather", [&] { gather(x, 0, lines); }},
      {"scatter_add", [&] { scatter_add(x, 1, lines, x); }},
      {"conv2d", [&] { conv2d(image, kernel, {1}); }},
      {"full", [&] { full({n, n}, 1, DType::F32, device()); }},
  };
  for (const auto& [name, action] : cases) {
    const NoMemory none(device(), 4 * n * n);
    const std::uint64_t live = device().pool().live_blocks;
    try {
      action();
      ADD_FAILURE() << name << " needed no memory";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::OutOfMemory) << name << ": " << error.what();
    }
    device().synchronize();
    EXPECT_EQ(device().pool().live_blocks, live) << name << " kept memory";
  }
  expect_close("copy", x, DType::F32, rounded(values, DType::F32), {0});
}

TEST_P(EveryOp, ThatFailsToDetachLeavesTheTensorAsItWas) {
  const std::int64_t n = 1 << 20;
  const std::vector<float> values(static_cast<std::size_t>(n), 1.0F);
  Tensor x = Tensor::from(values, device());
  const Tensor sibling = x;
  const Tensor ids = Tensor::zeros({1}, DType::I64, device());
  const Tensor two = full({1}, 2, DType::F32, device());
  const std::pair<const char*, std::function<void()>> cases[] = {
      {"fill", [&] { fill(x, 2); }},
      {"fill_at", [&] { fill_at(x, x.narrow(0, 3, 5).layout(), 2); }},
      {"assign", [&] { assign(x, two); }},
      {"assign_at", [&] { assign_at(x, x.layout().narrow(0, 7, 9), two); }},
      {"slice_set", [&] { slice_set(x, two, 0, 4); }},
      {"scatter_set", [&] { scatter_set(x, 0, ids, two); }},
      {"index_add_set", [&] { index_add_set(x, 0, ids, two); }},
  };
  for (const auto& [name, action] : cases) {
    {
      const NoMemory none(device(), 4 * n);
      EXPECT_THROW(action(), OutOfMemory) << name;
    }
    EXPECT_TRUE(x.shares_memory_with(sibling)) << name;
    EXPECT_EQ(x.to_vector<float>(), values) << name;
  }
}

// ---- far elements

TEST(EveryOpOnCpu, ElementsFartherApartThan32BitsCountAreReached) {
#if defined(TL_STRESS) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "fresh memory is poisoned: all of it would be touched";
#else
  // Five elements, 2^31 bytes apart. Only the pages they are on are ever touched.
  const std::int64_t step = std::int64_t{1} << 31;
  Tensor room;
  try {
    room = Tensor::uninitialized({4 * step + 1}, DType::U8, Device::cpu());
  } catch (const OutOfMemory&) {
    GTEST_SKIP() << "no 8 GiB of addresses";
  }
  using Bytes = std::vector<std::uint8_t>;
  const Layout far({5}, {step}, 0);
  assign_at(room, far, Tensor::from<std::uint8_t>({1, 2, 3, 4, 5}, {5}));
  {  // a view that lived on would make the writes below detach
    const Tensor x = room.with_layout(far);
    EXPECT_EQ(x.to_vector<std::uint8_t>(), (Bytes{1, 2, 3, 4, 5}));
    EXPECT_EQ(room.get(-1).item<std::uint8_t>(), 5);
    EXPECT_EQ(copy(x).to_vector<std::uint8_t>(), (Bytes{1, 2, 3, 4, 5}));
    EXPECT_EQ(add(x, x).to_vector<std::uint8_t>(), (Bytes{2, 4, 6, 8, 10}));
    EXPECT_EQ(to_dtype(x, DType::F32).to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5}));
    EXPECT_EQ(sum_all(x).item<std::uint8_t>(), 15);
    EXPECT_EQ(argmax_all(x).item<std::uint32_t>(), 4U);
    EXPECT_EQ(flip(x, {0}).to_vector<std::uint8_t>(), (Bytes{5, 4, 3, 2, 1}));
    EXPECT_EQ(sort(x, 0, true).first.to_vector<std::uint8_t>(), (Bytes{5, 4, 3, 2, 1}));
    const Tensor ids = Tensor::from<std::int64_t>({4, 0}, {2});
    EXPECT_EQ(index_select(x, 0, ids).to_vector<std::uint8_t>(), (Bytes{5, 1}));
  }
  // By an index that 32 bits do not hold.
  const Tensor last = Tensor::from<std::int64_t>({4 * step, 2 * step}, {2});
  EXPECT_EQ(index_select(room, 0, last).to_vector<std::uint8_t>(), (Bytes{5, 3}));
  EXPECT_EQ(gather(room, 0, last).to_vector<std::uint8_t>(), (Bytes{5, 3}));
  const Tensor seven = Tensor::from<std::uint8_t>({7, 8}, {2});
  scatter_set(room, 0, last, seven);
  index_add_set(room, 0, last, seven);
  fill_at(room, room.layout().narrow(0, 3 * step, 1), 9);
  EXPECT_EQ(room.with_layout(far).to_vector<std::uint8_t>(), (Bytes{1, 2, 16, 9, 14}));
#endif
}

// ---- several threads

TEST_P(EveryOp, MayBeUsedFromSeveralThreadsOnSharedTensors) {
  const Tensor x = contiguous_on(uniform({40, 30}, -1, 1, 3), DType::F32, device());
  const auto work = [&](int i) {
    Tensor own = x;  // shares until it is written
    fill(own, i);    // detaches: the others must not see it
    const Tensor y = softmax(matmul(x, x.t()) + own.narrow(1, 0, 1));
    return sum(relu(cat({y, y}, 1)), {1}).to_vector<float>();
  };
  std::vector<std::vector<float>> want, got(8);
  for (int i = 0; i < 8; ++i) want.push_back(work(i));
  const std::vector<float> before = x.to_vector<float>();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        for (const int i : {t, t + 4}) {
          auto result = work(i);
          if (round == 0) got[static_cast<std::size_t>(i)] = std::move(result);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, want);
  EXPECT_EQ(x.to_vector<float>(), before);
}

// ---- several handles and devices

TEST_P(EveryOp, TakesOperandsFromTwoHandlesOfOneGpu) {
  if (device().is_cpu()) GTEST_SKIP() << "the CPU has one handle";
  const Device other =
      device().is_cuda() ? Device::cuda_with_stream(0) : Device::rocm_with_stream(0);
  const Tensor a = contiguous_on(uniform({60, 50}, -1, 1, 4), DType::F32, device());
  EXPECT_TRUE(to(a, device()).shares_memory_with(a));
  const Tensor b = to(a, other);
  EXPECT_FALSE(b.shares_memory_with(a)) << "another handle has memory of its own";
  EXPECT_EQ(b.location(), a.location());
  for (int round = 0; round < 10; ++round) {
    // Work on one stream that the other has to wait for, both ways.
    const Tensor c = exp(a + round), d = exp(b + round);
    expect_equal("add", add(c, d), add(d, c));
    expect_equal("add", add(c, d), add(c, c));
    expect_equal("cat", cat({c, d}, 0), cat({d, c}, 0));
  }
}

TEST_P(EveryOp, ResultsTravelBetweenAllDevices) {
  const Host values = uniform({30, 20}, -1, 1, 5);
  const Tensor here = contiguous_on(values, DType::F32, device());
  const Host wanted = host_of(here.t());
  for (const Device& first : Device::all()) {
    for (const Device& second : Device::all()) {
      const Tensor there = to(to(here.t(), first), second);  // a view travels as a view
      EXPECT_EQ(there.location(), second.location());
      expect_close("to", there, DType::F32, wanted, {0}, join(first, " to ", second));
      expect_equal("to", to(neg(there), device()), neg(here.t()), join(first, " to ", second));
    }
  }
}

// ---- a caller's own

// out = x^2 + 1, as a user would write an op beside ours.
Tensor square_and_one(const Tensor& x) {
  const Tensor in = contiguous(x);
  Tensor out = Tensor::uninitialized(in.shape(), in.dtype(), in.device());
  const Device device = in.device();
  const Stream stream = device.stream();
  const float* from = in.read<float>(stream);
  float* to = out.write<float>(stream);
  if (device.is_cpu()) {
    for (std::int64_t i = 0; i < in.count(); ++i) to[i] = from[i] * from[i] + 1;
  } else {
    const auto function = device.modules().compile(
        "square_and_one.cu",
        "#include \"gpu.h\"\n"
        "GPU_KERNEL void square_and_one(const float* x, float* out, int count) {\n"
        "  const int i = static_cast<int>(global_thread());\n"
        "  if (i < count) out[i] = x[i] * x[i] + 1;\n"
        "}\n",
        "square_and_one");
    const auto count = static_cast<std::uint64_t>(in.count());
    launch(*function, stream, {.grid = grid_for(count, 256), .block = 256}, from, to,
           static_cast<int>(count));
  }
  return out;
}

TEST_P(EveryOp, OfTheCallersOwnWorksOnTensorsBesideOurs) {
  if (device().is_gpu() && driver::find_compiler(device().kind()).table == nullptr) {
    GTEST_SKIP() << driver::find_compiler(device().kind()).reason;
  }
  const Host values = uniform_for(DType::I32, {70, 9}, -9, 9, 6);
  const Tensor x = contiguous_on(values, DType::F32, device());
  expect_equal("add", square_and_one(x.t()), add(sqr(x.t()), 1));
  // In place, through the address for updates: only this tensor changes.
  Tensor y = x;
  if (device().is_cpu()) {
    *y.update<float>(device().stream()) = 100;
    EXPECT_EQ(y.get(0).get(0).item<float>(), 100);
    EXPECT_EQ(y.get(0).get(1).item<float>(), values.values[1]);
    EXPECT_EQ(x.get(0).get(0).item<float>(), values.values[0]);
  }
}

}  // namespace
}  // namespace tl
