// What holds for every op: no elements, no memory, several threads, several handles and devices.
#include <cmath>
#include <thread>

#include "ops/conformance.h"
#include "ops/op_arguments.h"
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

TEST_P(EveryOp, TakesTensorsWithoutElements) {
  int ops = 0;
  for (const OpRow& row : op_table()) {
    const DType dtype = row.dtypes.has(DType::F32) ? DType::F32 : DType::I32;
    const Arguments empty(device(), 0, dtype,
                          [&](const Shape& shape, DType t) { return zeros(shape, t); });
    const std::vector<OpValue> arguments = empty.arguments(row);
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
