// Module FILL against plain loops, for every element size, with guards on both sides of what is
// written.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/launching.h"

namespace tl {
namespace {

using test::Index;
using test::visited;
using test::walk;

class Fill : public test::OnEveryGpu {
 protected:
  static constexpr std::uint64_t kValue = 0x0123456789ABCDEF;

  template <class F>
  static void for_every_size(F&& f) {
    f.template operator()<std::uint8_t>();
    f.template operator()<std::uint16_t>();
    f.template operator()<std::uint32_t>();
    f.template operator()<std::uint64_t>();
  }

  template <class T>
  static std::vector<T> counting(std::size_t count) {
    std::vector<T> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(i * 2654435761U + 12345U);
    return out;
  }
};
TL_ON_EVERY_DEVICE(Fill);

TEST_P(Fill, WritesExactlyTheElementsAskedForAtAnyAlignment) {
  for_every_size([&]<class T> {
    for (const std::uint64_t start : {0, 1, 2, 3, 5, 8, 15}) {
      for (const std::uint64_t count : {0, 1, 2, 7, 16, 33, 255, 4099}) {
        const std::uint64_t total = start + count + 20;
        auto memory = DeviceMemory<T>::from_host(device(), std::vector<T>(total, T{0x5A}));
        run(fill_kernel(sizeof(T)), memory.mutable_data() + start, static_cast<T>(kValue),
            static_cast<Index>(count));
        std::vector<T> expected(total, T{0x5A});
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(start), count,
                    static_cast<T>(kValue));
        ASSERT_EQ(memory.to_vector(), expected)
            << sizeof(T) << " bytes, " << count << " elements from " << start;
      }
    }
  });
}

TEST_P(Fill, CopiesRowsWithTheirStrides) {
  struct Case {
    Index rows, cols, from, to, start;
  };
  for_every_size([&]<class T> {
    for (const Case c : {Case{1, 1, 1, 1, 0}, Case{3, 5, 5, 5, 0}, Case{3, 5, 9, 7, 0},
                         Case{4, 64, 64, 80, 0}, Case{4, 64, 128, 64, 1}, Case{300, 3, 4, 3, 0},
                         Case{2, 5000, 5008, 5000, 0}, Case{7, 32, 0, 32, 0}}) {
      const auto source = counting<T>(static_cast<std::size_t>(c.start + c.rows * c.from + c.cols));
      const std::vector<T> before(static_cast<std::size_t>(c.start + c.rows * c.to + 16), T{0x5A});
      const auto x = DeviceMemory<T>::from_host(device(), source);
      auto y = DeviceMemory<T>::from_host(device(), before);
      run(copy2d_kernel(sizeof(T)), x.data() + c.start, y.mutable_data() + c.start, c.rows, c.cols,
          c.from, c.to);
      std::vector<T> expected = before;
      for (Index r = 0; r < c.rows; ++r) {
        for (Index k = 0; k < c.cols; ++k) {
          expected[static_cast<std::size_t>(c.start + r * c.to + k)] =
              source[static_cast<std::size_t>(c.start + r * c.from + k)];
        }
      }
      ASSERT_EQ(y.to_vector(), expected) << sizeof(T) << " bytes, " << c.rows << " x " << c.cols;
    }
  });
}

TEST_P(Fill, SetsAndGathersThroughAnyLayout) {
  struct Case {
    std::vector<Index> dims, strides;
  };
  const std::vector<Case> cases{{{12}, {1}},
                                {{12}, {3}},
                                {{5, 7}, {7, 1}},
                                {{7, 5}, {1, 7}},  // transposed
                                {{3, 4, 5}, {40, 10, 2}},
                                {{2, 3, 4, 5}, {1, 2, 6, 24}},
                                {{4, 1, 3}, {3, 99, 1}},
                                {{2, 2, 2, 2, 2, 2, 2, 2}, {128, 64, 32, 16, 8, 4, 2, 1}},
                                {{2, 3, 2, 3, 2, 3, 2, 3}, {1, 2, 6, 12, 36, 72, 216, 432}}};
  for_every_size([&]<class T> {
    for (const Case& c : cases) {
      const auto at = visited(c.dims, c.strides);
      const auto total = static_cast<std::size_t>(*std::max_element(at.begin(), at.end())) + 9;
      const auto source = counting<T>(total);

      auto set = DeviceMemory<T>::from_host(device(), source);
      run(const_set_kernel(sizeof(T)), set.mutable_data(), static_cast<T>(kValue),
          walk(c.dims, c.strides));
      std::vector<T> expected = source;
      for (const Index i : at) expected[static_cast<std::size_t>(i)] = static_cast<T>(kValue);
      ASSERT_EQ(set.to_vector(), expected);

      const auto x = DeviceMemory<T>::from_host(device(), source);
      DeviceMemory<T> gathered(device(), at.size());
      run(copy_strided_kernel(sizeof(T)), in(x), out(gathered), walk(c.dims, c.strides));
      std::vector<T> wanted;
      for (const Index i : at) wanted.push_back(source[static_cast<std::size_t>(i)]);
      ASSERT_EQ(gathered.to_vector(), wanted);
    }
  });
}

TEST_P(Fill, BroadcastInputsAreReadWithStrideZero) {
  const auto x =
      DeviceMemory<std::uint32_t>::from_host(device(), std::vector<std::uint32_t>{1, 2, 3});
  DeviceMemory<std::uint32_t> y(device(), 12);
  run(copy_strided_kernel(4), in(x), out(y), walk({4, 3}, {0, 1}));
  EXPECT_EQ(y.to_vector(), (std::vector<std::uint32_t>{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

}  // namespace
}  // namespace tl
