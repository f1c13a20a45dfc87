// The kernels for gradients of attention, against what ops give in f64 on the CPU.
#include <limits>

#include "grad/check.h"
#include "ops/attention.h"
#include "tl/base/thread_pool.h"
#include "tl/ops/create.h"
#include "tl/ops/matmul.h"
#include "tl/ops/where.h"

namespace tl {
namespace {

using namespace test;

struct Case {
  std::int64_t batch = 1, heads = 2, kv_heads = 1, queries = 5, keys = 5, depth = 8,
               value_depth = 8;
  AttentionOptions options = {};
};

struct Inputs {
  Tensor q, k, v, g;
};

struct Found {
  std::vector<double> q, k, v;
};

class AttentionKernels : public OnEveryDevice {
 protected:
  static Tensor made(const Shape& shape, std::uint64_t seed, DType dtype) {
    return to_dtype(spread(shape, seed, Device::cpu(), 1.5), dtype);
  }
  static Inputs inputs_of(const Case& c, DType dtype) {
    return {made({c.batch, c.heads, c.queries, c.depth}, 1, dtype),
            made({c.batch, c.kv_heads, c.keys, c.depth}, 2, dtype),
            made({c.batch, c.kv_heads, c.keys, c.value_depth}, 3, dtype),
            made({c.batch, c.heads, c.queries, c.value_depth}, 4, dtype)};
  }
  static Tensor wide(const Tensor& x) { return to_dtype(x, DType::F64); }

  // Through the rule that is made of ops, since its result is to be followed.
  static Found by_ops(const Inputs& in, AttentionOptions options) {
    if (options.mask && is_float(options.mask->dtype())) options.mask = wide(*options.mask);
    if (options.slopes) options.slopes = wide(*options.slopes);
    const std::vector<Tensor> x = {follow(wide(in.q)), follow(wide(in.k)), follow(wide(in.v))};
    const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], options);
    const auto found = gradients_of(sum_all(mul(y, wide(in.g))), x, {.follow = true});
    return {found[0].to_vector<double>(), found[1].to_vector<double>(),
            found[2].to_vector<double>()};
  }

  // `layout` is what becomes of the inputs once they are on the device.
  template <class Layout>
  Found by_kernels(const Inputs& in, AttentionOptions options, const Layout& layout) const {
    const auto here = [&](const Tensor& x) { return layout(to(x, device())); };
    if (options.mask) options.mask = to(*options.mask, device());
    if (options.slopes) options.slopes = to(*options.slopes, device());
    const Tensor q = follow(here(in.q)), k = follow(here(in.k)), v = follow(here(in.v));
    const Tensor y = scaled_dot_product_attention(q, k, v, options);
    const Gradients found = backward(y, here(in.g));
    EXPECT_EQ(found.of(q).dtype(), in.q.dtype());
    return {wide(found.of(q)).to_vector<double>(), wide(found.of(k)).to_vector<double>(),
            wide(found.of(v)).to_vector<double>()};
  }
  Found by_kernels(const Inputs& in, const AttentionOptions& options) const {
    return by_kernels(in, options, [](const Tensor& x) { return x; });
  }

  static void expect_close(const char* what, const std::vector<double>& got,
                           const std::vector<double>& wanted, double error) {
    ASSERT_EQ(got.size(), wanted.size()) << what;
    double away = 0, all = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      away += (got[i] - wanted[i]) * (got[i] - wanted[i]);
      all += wanted[i] * wanted[i];
    }
    EXPECT_LE(std::sqrt(away), error * std::sqrt(all)) << what;
  }
  static void expect_close(const Found& got, const Found& wanted, double error) {
    expect_close("q", got.q, wanted.q, error);
    expect_close("k", got.k, wanted.k, error);
    expect_close("v", got.v, wanted.v, error);
  }
  void expect_right(const std::string& what, const Case& c, DType dtype, double error) const {
    SCOPED_TRACE(what + " " + std::string(name(dtype)));
    const Inputs in = inputs_of(c, dtype);
    expect_close(by_kernels(in, c.options), by_ops(in, c.options), error);
  }
};
TL_ON_EVERY_DEVICE(AttentionKernels);

struct Bound {
  DType dtype;
  double error;  // of the norm of the difference, beside the norm of what is right
};
// Narrow results are rounded before their gradient is computed with them.
constexpr Bound kBounds[] = {{DType::F8E4M3, 0.15},
                             {DType::F16, 2e-3},
                             {DType::BF16, 1.5e-2},
                             {DType::F32, 2e-6},
                             {DType::F64, 1e-12}};

// Every width of the kernels, with tiles that are not full.
TEST_P(AttentionKernels, GiveWhatOpsGiveForEveryDtypeAndDepth) {
  for (const auto& [dtype, error] : kBounds) {
    expect_right("narrow", {.queries = 66, .keys = 70, .depth = 12, .value_depth = 20}, dtype,
                 error);
    expect_right("middle", {.heads = 1, .queries = 9, .keys = 67, .depth = 64, .value_depth = 40},
                 dtype, error);
    expect_right("wide", {.heads = 1, .queries = 66, .keys = 5, .depth = 96, .value_depth = 128},
                 dtype, error);
  }
}

TEST_P(AttentionKernels, HaveOpsBesideThemForLongHeads) {
  expect_right("long keys", {.depth = 130}, DType::F32, 2e-6);
  expect_right("long values", {.value_depth = 130}, DType::F32, 2e-6);
}

TEST_P(AttentionKernels, AreLeftForProductsThatMayRound) {
  const bool before = allow_tf32(device());
  set_allow_tf32(device(), true);
  expect_right("rounded", {.queries = 20, .keys = 24}, DType::F32, 2e-3);
  set_allow_tf32(device(), before);
}

TEST_P(AttentionKernels, TakeEveryOption) {
  const Case base{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 67, .keys = 80};
  const auto check = [&](const char* what, const AttentionOptions& options, std::int64_t queries) {
    Case c = base;
    c.queries = queries;
    c.options = options;
    expect_right(what, c, DType::F32, 2e-6);
  };
  check("causal", {.causal = true}, 67);
  check("causal, more queries than keys", {.causal = true}, 150);
  check("scale", {.scale = 0.7}, 5);
  check("window", {.window = 9}, 80);
  check("causal window", {.causal = true, .window = 3}, 80);
  check("cap", {.causal = true, .softcap = 0.8}, 67);
  const Tensor slopes =
      Tensor::from(std::vector<float>{0.5F, -0.25F, 0.1F, 0.0F}, {4}, Device::cpu());
  check("slopes", {.causal = true, .slopes = slopes}, 5);
  const Tensor added = made({2, 1, 67, 80}, 6, DType::F32);
  check("numbers added", {.mask = added, .softcap = 2}, 67);
  const Tensor seen = ge(made({4, 1, 80}, 7, DType::F32), 0);
  check("keys left out", {.mask = seen, .causal = true}, 67);
}

TEST_P(AttentionKernels, TakeEveryLayout) {
  const Case c{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 6, .keys = 7};
  const Inputs in = inputs_of(c, DType::F32);
  const Found wanted = by_ops(in, {.causal = true});
  expect_close(by_kernels(in, {.causal = true}, [](const Tensor& x) { return strided(x); }), wanted,
               2e-6);
  // Heads side by side, as they come out of a product.
  expect_close(by_kernels(in, {.causal = true},
                          [](const Tensor& x) { return copy(x.transpose(1, 2)).transpose(1, 2); }),
               wanted, 2e-6);
  // The gradient of a sum is one number everywhere.
  Inputs same = in;
  same.g = full({1, 1, 1, 1}, 1, DType::F32).broadcast_as(in.g.shape());
  const auto as_they_are = [](const Tensor& x) { return x; };
  expect_close(by_kernels(same, {}, as_they_are), by_ops(same, {}), 2e-6);
}

TEST_P(AttentionKernels, GiveZerosWhereAQuerySeesNothing) {
  const Case c{.heads = 1, .queries = 3, .keys = 4};
  const Inputs in = inputs_of(c, DType::F32);
  const Tensor bytes = Tensor::from(std::vector<std::uint8_t>{1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0},
                                    {3, 4}, Device::cpu());
  const Tensor numbers =
      where(bytes, full(bytes.shape(), 0, DType::F64), -std::numeric_limits<double>::infinity());
  for (const Tensor& mask : {bytes, to_dtype(numbers, DType::F32)}) {
    const Found got = by_kernels(in, {.mask = mask});
    expect_close(got, by_ops(in, {.mask = mask}), 2e-6);
    for (std::size_t i = 8; i < 16; ++i) EXPECT_EQ(got.q[i], 0) << i;   // the second query
    for (std::size_t i = 24; i < 32; ++i) EXPECT_EQ(got.k[i], 0) << i;  // the last key
    for (std::size_t i = 24; i < 32; ++i) EXPECT_EQ(got.v[i], 0) << i;
  }
}

TEST_P(AttentionKernels, AreNotAskedWhereThereIsNothing) {
  for (const Case& c : {Case{.batch = 0}, Case{.queries = 0}, Case{.keys = 0}, Case{.depth = 0},
                        Case{.value_depth = 0}}) {
    const Inputs in = inputs_of(c, DType::F32);
    const Found got = by_kernels(in, {.causal = true});
    for (const auto& part : {got.q, got.k}) {
      for (const double x : part) EXPECT_EQ(x, 0);
    }
  }
  const Tensor flat = follow(Tensor::zeros({2, 3}, DType::F32, device()));
  expect_error(ErrorKind::ShapeMismatch, "attention: ", [&] { attention(flat, flat, flat); });
}

TEST_P(AttentionKernels, GiveTheSameBitsEachTime) {
  const Case c{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 130, .keys = 130};
  const Inputs in = inputs_of(c, DType::F32);
  const Found first = by_kernels(in, {.causal = true});
  ThreadPool& pool = ThreadPool::shared();
  const int threads = pool.threads();
  for (const int n : {1, 7}) {  // pairs of a batch and a key head are divided, or not
    if (device().is_cpu()) pool.set_threads(n);
    const Found again = by_kernels(in, {.causal = true});
    EXPECT_EQ(again.q, first.q);
    EXPECT_EQ(again.k, first.k);
    EXPECT_EQ(again.v, first.v);
  }
  pool.set_threads(threads);
}

TEST_P(AttentionKernels, KeepNoMatrixOfQueriesAndKeys) {
  constexpr std::int64_t kLength = 320, kDepth = 8;
  constexpr std::uint64_t kTensor = kLength * kDepth * 4, kMatrix = kLength * kLength * 4;
  const Case c{.heads = 1, .queries = kLength, .keys = kLength, .depth = kDepth};
  const Inputs in = inputs_of(c, DType::F32);
  const Tensor q = follow(to(in.q, device())), k = follow(to(in.k, device()));
  const Tensor v = follow(to(in.v, device())), g = to(in.g, device());
  device().synchronize();
  const std::uint64_t before = device().pool().live_bytes;
  device().reset_peak();
  {
    const Tensor y = scaled_dot_product_attention(q, k, v, {.causal = true});
    const Gradients found = backward(y, g);
    device().synchronize();
  }
  // The result, three gradients, and two numbers for each query.
  const std::uint64_t most = device().pool().peak_bytes - before;
  EXPECT_LE(most, 5 * kTensor + kTensor / 2);
  EXPECT_LT(most, kMatrix / 4);
}

}  // namespace
}  // namespace tl
