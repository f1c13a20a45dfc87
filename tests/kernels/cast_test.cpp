// Module CAST: all 121 pairs against the host's conversions, bit for bit (any NaN equals any NaN).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/launching.h"
#include "tl/base/dtype.h"

namespace tl {
namespace {

using test::Index;
using test::walk;

class Cast : public test::OnEveryGpu {};
TL_ON_EVERY_DEVICE(Cast);

// std::vector<bool> has no elements to point to.
template <class T>
using Storage = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

// Every value of a small type, and of a wide one those where rounding, saturation and signs turn,
// and random bits.
template <class T>
std::vector<Storage<T>> values() {
  std::vector<Storage<T>> out;
  if constexpr (std::is_same_v<T, bool>) {
    out = {0, 1, 1, 0, 1};
  } else if constexpr (sizeof(T) <= 2) {
    for (unsigned bits = 0; bits < (1U << (8 * sizeof(T))); ++bits) {
      T value;
      std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));  // little endian
      out.push_back(value);
    }
  } else {
    std::mt19937_64 random(11);
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t bits = random() >> (random() % 64);
      T value;
      std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
      out.push_back(value);
    }
    for (const double x : {0.0,
                           0.5,
                           1.0,
                           1.5,
                           2.5,
                           127.5,
                           255.0,
                           255.5,
                           256.0,
                           447.9,
                           448.0,
                           464.0,
                           480.0,
                           2047.5,
                           32767.5,
                           65504.0,
                           65519.9,
                           65520.0,
                           1e-8,
                           5.9e-8,
                           6e-5,
                           1e-40,
                           1e38,
                           3.3895e38,
                           3.4e38,
                           2147483647.0,
                           2147483648.0,
                           4294967295.0,
                           4294967296.0,
                           9.2233720368547748e18,
                           9.2233720368547758e18,
                           1e30,
                           1e300,
                           1.0009765625,
                           1.00048828125,
                           1.00390625,
                           1.01171875,
                           16777217.0}) {
      for (const double s : {x, -x}) {
        for (const double v : {std::nextafter(s, -INFINITY), s, std::nextafter(s, INFINITY)}) {
          out.push_back(convert<T>(v));
        }
      }
    }
    if constexpr (std::is_floating_point_v<T>) {
      using Limits = std::numeric_limits<T>;
      for (const T v : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), Limits::max(),
                        Limits::lowest(), Limits::min(), Limits::denorm_min(), T{-0.0}}) {
        out.push_back(v);
      }
    } else {
      for (int shift = 0; shift < static_cast<int>(8 * sizeof(T)); ++shift) {
        for (const std::int64_t near : {-1, 0, 1}) {
          out.push_back(
              static_cast<T>((std::uint64_t{1} << shift) + static_cast<std::uint64_t>(near)));
        }
      }
    }
  }
  return out;
}

template <class T>
bool is_nan(Storage<T> value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value);
  } else if constexpr (kIsSmallFloat<T>) {
    return std::isnan(static_cast<float>(value));
  } else {
    return false;
  }
}

template <class From, class To>
Storage<To> expected_of(Storage<From> value) {
  if constexpr (std::is_same_v<From, bool>) {
    return static_cast<Storage<To>>(convert<To>(value != 0));
  } else {
    return static_cast<Storage<To>>(convert<To>(value));
  }
}

template <class From, class To>
void expect_equal(const std::vector<Storage<From>>& from, const std::vector<Storage<To>>& got,
                  const char* layout) {
  ASSERT_EQ(from.size(), got.size());
  int wrong = 0;
  for (std::size_t i = 0; i < from.size() && wrong < 3; ++i) {
    const Storage<To> want = expected_of<From, To>(from[i]);
    if (is_nan<To>(want) && is_nan<To>(got[i])) continue;
    if (std::memcmp(&want, &got[i], sizeof(want)) == 0) continue;
    ++wrong;
    ADD_FAILURE() << name(dtype_of<From>) << " to " << name(dtype_of<To>) << ", " << layout
                  << ", element " << i << ": input "
                  << convert<double>(expected_of<From, double>(from[i])) << ", got bits "
                  << testing::PrintToString(std::vector<unsigned char>(
                         reinterpret_cast<const unsigned char*>(&got[i]),
                         reinterpret_cast<const unsigned char*>(&got[i] + 1)));
  }
}

TEST_P(Cast, EveryPairConvertsAsTheHostDoes) {
  for (const DType from_type : kDTypes) {
    visit_dtype("test", from_type, [&]<class From> {
      const auto host = values<From>();
      const auto count = static_cast<Index>(host.size());
      const auto x = DeviceMemory<Storage<From>>::from_host(device(), host);
      for (const DType to_type : kDTypes) {
        visit_dtype("test", to_type, [&]<class To> {
          DeviceMemory<Storage<To>> y(device(), host.size());
          run(cast_kernel(from_type, to_type), in(x), out(y), walk({count}, {1}));
          expect_equal<From, To>(host, y.to_vector(), "contiguous");
          if (testing::Test::HasFailure()) return;

          // Transposed, from an odd start: no vectors, every element by its strides.
          const Index rows = std::min<Index>(37, (count - 1) / 3);
          if (rows < 1) return;
          std::vector<Storage<From>> picked;
          for (Index c = 0; c < 3; ++c) {
            for (Index r = 0; r < rows; ++r) {
              picked.push_back(host[static_cast<std::size_t>(1 + r * 3 + c)]);
            }
          }
          DeviceMemory<Storage<To>> z(device(), picked.size());
          run(cast_kernel(from_type, to_type), x.data() + 1, out(z), walk({3, rows}, {1, 3}));
          expect_equal<From, To>(picked, z.to_vector(), "transposed");
        });
        if (testing::Test::HasFailure()) return;
      }
    });
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(Cast, AnUnalignedViewConvertsTheSame) {
  std::vector<float> host(1001);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i) * 0.37F - 100.0F;
  const auto x = DeviceMemory<float>::from_host(device(), host);
  for (const std::size_t start : {1U, 2U, 3U}) {
    const std::size_t count = host.size() - start;
    DeviceMemory<half> y(device(), count);
    run(cast_kernel(DType::F32, DType::F16), x.data() + start, out(y),
        walk({static_cast<Index>(count)}, {1}));
    const auto got = y.to_vector();
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(got[i].bits(), half(host[start + i]).bits()) << i << " from " << start;
    }
  }
}

}  // namespace
}  // namespace tl
