#include "ops/conformance.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

namespace tl::test {

namespace {

template <class T>
double to_double(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x ? 1 : 0;
  } else {
    return static_cast<double>(x);
  }
}

// The element a reference's number becomes.
template <class T>
T element(double x) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return static_cast<std::int64_t>(x);
  } else {
    return convert<T>(x);
  }
}

template <class T>
T poison() {
  if constexpr (std::is_same_v<T, bool>) {
    return true;
  } else if constexpr (std::numeric_limits<T>::has_quiet_NaN) {
    return std::numeric_limits<T>::quiet_NaN();
  } else {
    return std::numeric_limits<T>::max();
  }
}

// Calls f(logical position, storage offset) for every element.
template <class F>
void visit(const Layout& layout, F&& f) {
  Dims at = Dims::repeated(layout.rank(), 0);
  for (std::int64_t i = 0; i < layout.count(); ++i) {
    std::int64_t offset = layout.offset();
    for (int d = 0; d < layout.rank(); ++d) offset += at[d] * layout.strides()[d];
    f(static_cast<std::size_t>(i), static_cast<std::size_t>(offset));
    for (int d = layout.rank() - 1; d >= 0; --d) {
      if (++at[d] < layout.shape()[d]) break;
      at[d] = 0;
    }
  }
}

// ---- the worst errors seen

class Report {
 public:
  ~Report() {
    const char* file = std::getenv("TL_OPS_REPORT");
    if (file == nullptr) return;
    std::ofstream out(file, std::ios::app);
    for (const auto& [key, worst] : worst_) {
      const auto& [op, dtype, device] = key;
      out << op << '\t' << tl::name(dtype) << '\t' << device << '\t' << worst << '\n';
    }
  }
  void note(std::string_view op, DType dtype, const std::string& device, double error) {
    const std::lock_guard lock(mutex_);
    auto& worst = worst_.try_emplace({std::string(op), dtype, device}, error).first->second;
    if (error > worst) worst = error;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<std::string, DType, std::string>, double> worst_;  // -1: refused on purpose
};

Report& report() {
  static Report instance;
  return instance;
}

std::string device_kind(const Tensor& x) { return std::string(tl::name(x.location().kind)); }

}  // namespace

Host host_of(const Tensor& x) {
  Host out{x.shape(), std::vector<double>(static_cast<std::size_t>(x.count()))};
  visit_dtype("host_of", x.dtype(), [&]<class T> {
    const auto bytes = std::make_unique<T[]>(static_cast<std::size_t>(x.count()));
    x.read_bytes(std::as_writable_bytes(std::span(bytes.get(), out.values.size())));
    for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = to_double(bytes[i]);
  });
  return out;
}

std::string_view name(Arrangement arrangement) {
  switch (arrangement) {
    case Arrangement::Contiguous:
      return "contiguous";
    case Arrangement::Transposed:
      return "transposed";
    case Arrangement::Narrowed:
      return "narrowed";
    case Arrangement::Stepped:
      return "stepped";
  }
  return "?";
}

Tensor arrange(const Host& values, DType dtype, Arrangement arrangement, const Device& device) {
  Shape room = values.shape;
  const int rank = room.size();
  if (arrangement == Arrangement::Transposed && rank > 1) std::swap(room[0], room[rank - 1]);
  if (arrangement == Arrangement::Narrowed) {
    for (std::int64_t& size : room) size += 3;
  }
  if (arrangement == Arrangement::Stepped && rank > 0) room[rank - 1] = 2 * room[rank - 1] + 1;
  Layout layout(room);
  if (arrangement == Arrangement::Transposed && rank > 1) layout = layout.transpose(0, rank - 1);
  if (arrangement == Arrangement::Narrowed) {
    for (int d = 0; d < rank; ++d) layout = layout.narrow(d, 1 + d % 2, values.shape[d]);
  }
  if (arrangement == Arrangement::Stepped && rank > 0) {
    layout = layout.narrow(rank - 1, 1, 2 * values.shape[rank - 1]).step(rank - 1, 2);
  }
  EXPECT_EQ(layout.shape(), values.shape);
  return visit_dtype("arrange", dtype, [&]<class T>() {
    const auto total = static_cast<std::size_t>(element_count("arrange", room));
    const auto storage = std::make_unique<T[]>(total);
    std::fill_n(storage.get(), total, poison<T>());
    visit(layout,
          [&](std::size_t i, std::size_t at) { storage[at] = element<T>(values.values[i]); });
    const Tensor parent = Tensor::from(std::span<const T>(storage.get(), total), room, device);
    return parent.with_layout(layout);
  });
}

Host rounded(const Host& values, DType dtype) {
  Host out = values;
  visit_dtype("rounded", dtype, [&]<class T> {
    for (double& x : out.values) x = to_double(element<T>(x));
  });
  return out;
}

Host uniform(const Shape& shape, double low, double high, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Host out{shape, std::vector<double>(static_cast<std::size_t>(element_count("uniform", shape)))};
  // Not std::uniform_real_distribution: its numbers differ between libraries.
  for (double& x : out.values) {
    x = low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
  }
  return out;
}

Host uniform_for(DType dtype, const Shape& shape, double low, double high, std::uint64_t seed) {
  const bool is_unsigned = dtype == DType::U8 || dtype == DType::U32 || dtype == DType::Bool;
  Host out = uniform(shape, is_unsigned && low < 0 ? 0 : low, high, seed);
  for (double& x : out.values) {
    if (dtype == DType::Bool) x = x > (low < 0 ? 0 : low) + (high - low) / 2 ? 1 : 0;
    if (is_int(dtype)) x = std::floor(x);
  }
  return rounded(out, dtype);
}

Shape random_shape(std::mt19937_64& random, int rank, std::int64_t most, bool zero) {
  Shape shape;
  for (int d = 0; d < rank; ++d) {
    const auto pick = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most * 4));
    shape.push_back(zero && pick == 0 ? 0 : pick % most + 1);
  }
  return shape;
}

std::uint64_t fuzz_seed() {
  const char* text = std::getenv("TL_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20260101;
}

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::F8E4M3:
      return 0x1p-3;
    case DType::F16:
      return 0x1p-10;
    case DType::BF16:
      return 0x1p-7;
    case DType::F32:
      return 0x1p-23;
    case DType::F64:
      return 0x1p-52;
    default:
      return 0;
  }
}

namespace {

// The smallest normal number of a float dtype: below it an error is absolute.
double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::F8E4M3:
      return 0x1p-6;
    case DType::F16:
      return 0x1p-14;
    case DType::F64:
      return std::numeric_limits<double>::min();
    default:
      return 0x1p-126;
  }
}

}  // namespace

void expect_close(const Tested& op, const Tensor& got, DType dtype, const Host& wanted,
                  const Bound& bound, const std::string& what) {
  const std::string about = join(op.name, " on ", got.location(), " ", what);
  ASSERT_EQ(got.dtype(), dtype) << about;
  ASSERT_EQ(got.shape(), wanted.shape) << about;
  const Host have = host_of(got);
  double worst = 0;
  for (std::size_t i = 0; i < have.values.size(); ++i) {
    const double x = have.values[i];
    const double w = wanted.values[i];
    if (!is_float(dtype)) {
      ASSERT_EQ(x, w) << about << ", element " << i;
      continue;
    }
    if (std::isnan(w) || std::isnan(x)) {
      ASSERT_TRUE(std::isnan(w) && std::isnan(x))
          << about << ", element " << i << ": got " << x << ", wanted " << w;
      continue;
    }
    const double in_dtype = rounded({{1}, {w}}, dtype).values[0];
    if (x == in_dtype || x == w) continue;
    const double size = std::max({std::abs(w), bound.scale, smallest_normal(dtype)});
    const double error = std::abs(x - w) / (epsilon(dtype) * size);
    ASSERT_LE(error, bound.units) << about << ", element " << i << ": got " << x << ", wanted " << w
                                  << " (seed " << fuzz_seed() << ")";
    worst = std::max(worst, error);
  }
  report().note(op.name, op.operand.value_or(dtype), device_kind(got), worst);
}

void expect_equal(const Tested& op, const Tensor& got, const Tensor& wanted,
                  const std::string& what) {
  const std::string about = join(op.name, " on ", got.location(), " ", what);
  ASSERT_EQ(got.dtype(), wanted.dtype()) << about;
  ASSERT_EQ(got.shape(), wanted.shape()) << about;
  std::vector<std::byte> a(got.size_bytes()), b(wanted.size_bytes());
  got.read_bytes(a);
  wanted.read_bytes(b);
  const std::size_t each = size_of(got.dtype());
  for (std::size_t i = 0; i < a.size(); i += each) {
    if (std::memcmp(a.data() + i, b.data() + i, each) != 0) {
      FAIL() << about << ", element " << i / each << ": got " << host_of(got).values[i / each]
             << ", wanted " << host_of(wanted).values[i / each];
    }
  }
  report().note(op.name, op.operand.value_or(got.dtype()), device_kind(got), 0);
}

void expect_unsupported(std::string_view op, DType dtype, const Device& device,
                        const std::function<void()>& action) {
  expect_error(ErrorKind::Unsupported, std::string(op), action);
  report().note(op, dtype, std::string(tl::name(device.kind())), -1);
}

}  // namespace tl::test
