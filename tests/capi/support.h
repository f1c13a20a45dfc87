// What the tests of the C interface share: handles that free themselves, and short ways to ask.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/on_every_device.h"
#include "tl/c.h"

namespace tl::test {

// Fails the test with the library's message when a call did.
#define TL_GOOD(call) ASSERT_EQ(call, TL_OK) << tl_last_error()

// A tensor that frees its handle.
class Handle {
 public:
  Handle() = default;
  explicit Handle(tl_tensor* tensor) : tensor_(tensor) {}
  Handle(Handle&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Handle() { EXPECT_EQ(tl_tensor_free(tensor_), TL_OK) << tl_last_error(); }

  operator tl_tensor*() const { return tensor_; }  // NOLINT(google-explicit-constructor)
  tl_tensor** out() { return &tensor_; }
  tl_tensor* release() { return std::exchange(tensor_, nullptr); }

 private:
  tl_tensor* tensor_ = nullptr;
};

inline tl_device c_device(const Device& device) {
  return {static_cast<std::int32_t>(device.kind()), device.index()};
}

inline Handle floats(const std::vector<float>& values, const std::vector<std::int64_t>& shape,
                     const Device& device) {
  Handle out;
  EXPECT_EQ(tl_tensor_from_data(values.data(), TL_F32, shape.data(), static_cast<int>(shape.size()),
                                c_device(device), out.out()),
            TL_OK)
      << tl_last_error();
  return out;
}

inline std::vector<float> values_of(const tl_tensor* tensor) {
  std::int64_t count = 0;
  EXPECT_EQ(tl_tensor_count(tensor, &count), TL_OK) << tl_last_error();
  std::vector<float> values(static_cast<std::size_t>(count));
  EXPECT_EQ(tl_tensor_to_host(tensor, values.data(), values.size() * sizeof(float)), TL_OK)
      << tl_last_error();
  return values;
}

inline std::vector<std::int64_t> shape_of(const tl_tensor* tensor) {
  int rank = 0;
  EXPECT_EQ(tl_tensor_rank(tensor, &rank), TL_OK) << tl_last_error();
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rank));
  EXPECT_EQ(tl_tensor_shape(tensor, shape.data(), rank), TL_OK) << tl_last_error();
  return shape;
}

// One result.
inline Handle op(const char* name, const std::vector<tl_arg>& arguments) {
  Handle out;
  EXPECT_EQ(tl_op(name, arguments.data(), arguments.size(), out.out(), 1, nullptr), TL_OK)
      << tl_last_error();
  return out;
}

inline void expect_status(tl_status wanted, tl_status got, const std::string& message) {
  EXPECT_EQ(tl_status_name(got), std::string(tl_status_name(wanted))) << tl_last_error();
  EXPECT_NE(std::string(tl_last_error()).find(message), std::string::npos)
      << "message: " << tl_last_error() << "\nexpected to contain: " << message;
}

// Live and borrowed bytes are, at the end of a test, what they were at its beginning.
class OnEveryDeviceInC : public OnEveryDevice {
 protected:
  void SetUp() override { before_ = use(); }
  void TearDown() override {
    EXPECT_EQ(use().live_bytes, before_.live_bytes);
    EXPECT_EQ(use().live_blocks, before_.live_blocks);
    EXPECT_EQ(use().mapped_bytes, before_.mapped_bytes);
  }
  tl_memory_use use() const {
    tl_memory_use now{};
    EXPECT_EQ(tl_memory(c_device(device()), &now), TL_OK) << tl_last_error();
    return now;
  }

 private:
  tl_memory_use before_{};
};

}  // namespace tl::test
