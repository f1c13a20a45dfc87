// Tensors, ops, devices and memory through tl/c.h.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "capi/support.h"
#include "tl/base/version.h"

namespace tl::test {
namespace {

class CTensors : public OnEveryDeviceInC {};
TL_ON_EVERY_DEVICE(CTensors);

TEST_P(CTensors, KnowWhatTheyAre) {
  const Handle x = floats({1, 2, 3, 4, 5, 6}, {2, 3}, device());
  tl_dtype dtype{};
  TL_GOOD(tl_tensor_dtype(x, &dtype));
  EXPECT_EQ(dtype, TL_F32);
  tl_device where{};
  TL_GOOD(tl_tensor_device(x, &where));
  EXPECT_EQ(where.kind, c_device(device()).kind);
  EXPECT_EQ(where.index, 0);
  EXPECT_EQ(shape_of(x), (std::vector<std::int64_t>{2, 3}));
  std::int64_t strides[2] = {};
  TL_GOOD(tl_tensor_strides(x, strides, 2));
  EXPECT_EQ(strides[0], 3);
  EXPECT_EQ(strides[1], 1);
  std::uint64_t bytes = 0;
  TL_GOOD(tl_tensor_size_bytes(x, &bytes));
  EXPECT_EQ(bytes, 24U);
  EXPECT_EQ(values_of(x), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  char* text = nullptr;
  TL_GOOD(tl_tensor_text(x, &text));
  EXPECT_NE(std::string(text).find('6'), std::string::npos) << text;
  tl_text_free(text);
}

TEST_P(CTensors, ZerosOfEveryDtype) {
  const std::int64_t shape[] = {3};
  for (int dtype = TL_U8; dtype <= TL_BOOL; ++dtype) {
    Handle x;
    TL_GOOD(tl_tensor_zeros(dtype, shape, 1, c_device(device()), x.out()));
    std::uint64_t bytes = 0;
    TL_GOOD(tl_tensor_size_bytes(x, &bytes));
    std::vector<unsigned char> host(bytes, 0xFF);
    TL_GOOD(tl_tensor_to_host(x, host.data(), bytes));
    EXPECT_EQ(host, std::vector<unsigned char>(bytes, 0)) << dtype;
  }
}

TEST_P(CTensors, AWriteLeavesClonesAlone) {
  const Handle x = floats({1, 2}, {2}, device());
  Handle y;
  TL_GOOD(tl_tensor_clone(x, y.out()));
  int shares = 0;
  TL_GOOD(tl_tensor_shares_memory(x, y, &shares));
  EXPECT_EQ(shares, 1);
  const float other[] = {7, 8};
  TL_GOOD(tl_tensor_write(y, other, sizeof other));
  TL_GOOD(tl_tensor_shares_memory(x, y, &shares));
  EXPECT_EQ(shares, 0);
  EXPECT_EQ(values_of(x), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of(y), (std::vector<float>{7, 8}));
}

TEST_P(CTensors, MoveBetweenDevices) {
  const Handle x = floats({1, 2, 3}, {3}, Device::cpu());
  Handle there;
  TL_GOOD(tl_tensor_to_device(x, c_device(device()), there.out()));
  EXPECT_EQ(values_of(there), (std::vector<float>{1, 2, 3}));
  Handle back;
  TL_GOOD(tl_tensor_to_device(there, tl_device{TL_CPU, 0}, back.out()));
  EXPECT_EQ(values_of(back), (std::vector<float>{1, 2, 3}));
  TL_GOOD(tl_device_synchronize(c_device(device())));
}

TEST_P(CTensors, EveryKindOfArgument) {
  const Handle a = floats({1, 2, 3, 4}, {2, 2}, device());
  EXPECT_EQ(values_of(op("matmul", {tl_arg_tensor(a), tl_arg_tensor(a)})),
            (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(values_of(op("add", {tl_arg_tensor(a), tl_arg_number(0.5)})),
            (std::vector<float>{1.5, 2.5, 3.5, 4.5}));
  const tl_tensor* const list[] = {a, a};
  EXPECT_EQ(shape_of(op("cat", {tl_arg_tensors(list, 2), tl_arg_integer(0)})),
            (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(values_of(op("einsum", {tl_arg_text("ij->ji"), tl_arg_tensors(list, 1)})),
            (std::vector<float>{1, 3, 2, 4}));
  const std::int64_t four[] = {4};
  EXPECT_EQ(shape_of(op("reshape", {tl_arg_tensor(a), tl_arg_integers(four, 1)})),
            (std::vector<std::int64_t>{4}));
  const Handle sum = op("sum", {tl_arg_tensor(a), tl_arg_integer(1), tl_arg_boolean(1)});
  EXPECT_EQ(shape_of(sum), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(values_of(sum), (std::vector<float>{3, 7}));
  const Handle full = op("full", {tl_arg_integers(four, 1), tl_arg_integer(3), tl_arg_dtype(TL_F32),
                                  tl_arg_device(c_device(device()))});
  EXPECT_EQ(values_of(full), (std::vector<float>{3, 3, 3, 3}));
  const Handle normed = op("rms_norm", {tl_arg_tensor(a), tl_arg_none(), tl_arg_number(0)});
  EXPECT_NEAR(values_of(normed)[1], 2 / std::sqrt(2.5), 1e-5);
}

TEST_P(CTensors, ViewsShareMemory) {
  const Handle x = floats({1, 2, 3, 4, 5, 6}, {2, 3}, device());
  const Handle turned = op("transpose", {tl_arg_tensor(x), tl_arg_integer(0), tl_arg_integer(1)});
  int shares = 0;
  TL_GOOD(tl_tensor_shares_memory(x, turned, &shares));
  EXPECT_EQ(shares, 1);
  EXPECT_EQ(values_of(turned), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  const Handle part = op("slice", {tl_arg_tensor(x), tl_arg_integer(1), tl_arg_integer(0),
                                   tl_arg_integer(3), tl_arg_integer(2)});
  EXPECT_EQ(values_of(part), (std::vector<float>{1, 3, 4, 6}));
  EXPECT_EQ(values_of(op("select", {tl_arg_tensor(x), tl_arg_integer(0), tl_arg_integer(1)})),
            (std::vector<float>{4, 5, 6}));
  const Handle row =
      op("narrow", {tl_arg_tensor(x), tl_arg_integer(0), tl_arg_integer(0), tl_arg_integer(1)});
  EXPECT_EQ(shape_of(op("squeeze", {tl_arg_tensor(row), tl_arg_integer(0)})),
            (std::vector<std::int64_t>{3}));
  EXPECT_EQ(shape_of(op("unsqueeze", {tl_arg_tensor(row), tl_arg_integer(0)})),
            (std::vector<std::int64_t>{1, 1, 3}));
  const std::int64_t wide[] = {4, 3};
  EXPECT_EQ(shape_of(op("broadcast_as", {tl_arg_tensor(row), tl_arg_integers(wide, 2)})),
            (std::vector<std::int64_t>{4, 3}));
  const std::int64_t order[] = {1, 0};
  EXPECT_EQ(shape_of(op("permute", {tl_arg_tensor(x), tl_arg_integers(order, 2)})),
            (std::vector<std::int64_t>{3, 2}));
  const std::int64_t flat[] = {-1};
  EXPECT_EQ(shape_of(op("view", {tl_arg_tensor(x), tl_arg_integers(flat, 1)})),
            (std::vector<std::int64_t>{6}));
}

TEST_P(CTensors, SeveralResultsOrNone) {
  const Handle x = floats({3, 1, 2}, {3}, device());
  const tl_arg arguments[] = {tl_arg_tensor(x)};
  const tl_memory_use before = use();
  tl_tensor* results[2] = {};
  expect_status(TL_SIZE_MISMATCH, tl_op("sort", arguments, 1, results, 1, nullptr),
                "sort: it gives 2 tensors, and there is room for 1");
  EXPECT_EQ(use().live_bytes, before.live_bytes);
  std::size_t count = 0;
  TL_GOOD(tl_op("sort", arguments, 1, results, 2, &count));
  const Handle values(results[0]);
  const Handle places(results[1]);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(values_of(values), (std::vector<float>{1, 2, 3}));
}

TEST_P(CTensors, MemoryIsCounted) {
  const tl_memory_use before = use();
  TL_GOOD(tl_memory_reset_peak(c_device(device())));
  {
    const Handle x = floats(std::vector<float>(1000), {1000}, device());
    EXPECT_EQ(use().live_bytes, before.live_bytes + 4000);
    char* text = nullptr;
    TL_GOOD(tl_memory_json(&text));
    const auto json = nlohmann::json::parse(text);
    tl_text_free(text);
    bool found = false;
    for (const auto& each : json.at("devices")) {
      if (each.at("device") != device().text()) continue;
      found = true;
      EXPECT_EQ(each.at("live_bytes"), before.live_bytes + 4000);
      EXPECT_GE(each.at("held").size(), 1U);
    }
    EXPECT_TRUE(found) << json;
  }
  EXPECT_GE(use().peak_bytes, before.live_bytes + 4000);
  std::uint64_t returned = 0;
  TL_GOOD(tl_memory_trim(c_device(device()), &returned));
  EXPECT_GT(returned, 0U);
  EXPECT_EQ(use().pooled_bytes, 0U);
}

TEST(CErrors, AreStatusesWithMessages) {
  const Handle x = floats({1, 2, 3, 4}, {2, 2}, Device::cpu());
  const Handle y = floats({1, 2, 3}, {3}, Device::cpu());
  tl_tensor* none = nullptr;
  const auto call = [&](const char* name, const std::vector<tl_arg>& arguments) {
    return tl_op(name, arguments.data(), arguments.size(), &none, 1, nullptr);
  };
  expect_status(TL_BAD_ARGUMENT, call("nothing", {}), "there is no op 'nothing'");
  expect_status(TL_SHAPE_MISMATCH, call("matmul", {tl_arg_tensor(x), tl_arg_tensor(y)}),
                "matmul: ");
  expect_status(TL_BAD_ARGUMENT, call("softmax", {tl_arg_tensor(x), tl_arg_integer(7)}),
                "softmax: ");
  expect_status(TL_BAD_ARGUMENT, call("softmax", {}), "is missing in softmax");
  expect_status(TL_BAD_ARGUMENT, call("transpose", {tl_arg_tensor(x)}), "argument 2 is missing");
  expect_status(TL_BAD_ARGUMENT,
                call("squeeze", {tl_arg_tensor(x), tl_arg_integer(0), tl_arg_none()}),
                "3 arguments for squeeze(x, dim)");
  tl_arg odd = tl_arg_none();
  odd.kind = 77;
  expect_status(TL_BAD_ARGUMENT, call("exp", {odd}), "there is no kind of argument 77");
  expect_status(TL_BAD_ARGUMENT, tl_op(nullptr, nullptr, 0, &none, 1, nullptr), "name is null");
  expect_status(TL_BAD_ARGUMENT, tl_op("exp", nullptr, 1, &none, 1, nullptr), "arguments is null");
  const tl_arg one[] = {tl_arg_tensor(x)};
  expect_status(TL_BAD_ARGUMENT, tl_op("exp", one, 1, nullptr, 1, nullptr), "results is null");
  EXPECT_EQ(none, nullptr);

  const tl_device cpu = {TL_CPU, 0};
  const std::int64_t negative[] = {-2};
  const std::int64_t huge[] = {INT64_MAX, 4};
  const float value = 1;
  expect_status(TL_BAD_ARGUMENT, tl_tensor_from_data(&value, TL_F32, negative, 1, cpu, &none),
                "-2");
  expect_status(TL_OVERFLOW, tl_tensor_zeros(TL_F32, huge, 2, cpu, &none), "tl_tensor_zeros");
  expect_status(TL_BAD_ARGUMENT, tl_tensor_zeros(TL_F32, huge, 9, cpu, &none), "a rank of 9");
  expect_status(TL_BAD_ARGUMENT, tl_tensor_zeros(TL_F32, nullptr, 1, cpu, &none), "shape is null");
  expect_status(TL_BAD_ARGUMENT, tl_tensor_zeros(99, huge, 0, cpu, &none), "there is no dtype 99");
  expect_status(TL_BAD_ARGUMENT, tl_tensor_zeros(TL_F32, huge, 0, tl_device{9, 0}, &none),
                "there is no kind of device 9");
  expect_status(TL_BAD_ARGUMENT, tl_tensor_zeros(TL_F32, huge, 0, tl_device{TL_CPU, 1}, &none),
                "there is no device 1");
  const std::int64_t three[] = {3};
  expect_status(TL_BAD_ARGUMENT, tl_tensor_from_data(nullptr, TL_F32, three, 1, cpu, &none),
                "data is null");
  expect_status(TL_BAD_ARGUMENT, tl_tensor_from_data(&value, TL_F32, three, 0, cpu, nullptr),
                "tensor is null");
  float room[4] = {};
  expect_status(TL_SIZE_MISMATCH, tl_tensor_to_host(x, room, 8), "room for 8 bytes");
  expect_status(TL_SIZE_MISMATCH, tl_tensor_write(x, room, 8), "8 bytes are given");
  std::int64_t small[1] = {};
  expect_status(TL_SIZE_MISMATCH, tl_tensor_shape(x, small, 1), "room for 1 sizes");
  expect_status(TL_BAD_ARGUMENT, tl_tensor_dtype(x, nullptr), "the result is null");
  const std::size_t last = [] {
    std::size_t count = 0;
    EXPECT_EQ(tl_op_count(&count), TL_OK);
    return count;
  }();
  expect_status(TL_BAD_ARGUMENT, tl_op_info(last, nullptr, nullptr, nullptr), "there is no op");
}

TEST(CErrors, HandlesThatAreNone) {
  const std::int64_t shape[] = {2};
  tl_tensor* x = nullptr;
  TL_GOOD(tl_tensor_zeros(TL_F32, shape, 1, tl_device{TL_CPU, 0}, &x));
  TL_GOOD(tl_tensor_free(nullptr));
  TL_GOOD(tl_tensor_free(x));
  expect_status(TL_BAD_HANDLE, tl_tensor_free(x),
                "tl_tensor_free: this is not the handle of a tensor, or it was freed");
  // A new tensor never gets the number of an old one.
  tl_tensor* y = nullptr;
  TL_GOOD(tl_tensor_zeros(TL_F32, shape, 1, tl_device{TL_CPU, 0}, &y));
  const Handle keeps(y);
  EXPECT_NE(x, y);
  expect_status(TL_BAD_HANDLE, tl_tensor_free(x), "freed");
  int rank = -1;
  expect_status(TL_BAD_HANDLE, tl_tensor_rank(x, &rank), "tl_tensor_rank");
  expect_status(TL_BAD_HANDLE, tl_tensor_rank(nullptr, &rank),
                "null is not the handle of a tensor");
  EXPECT_EQ(rank, -1);
  int shares = 0;
  expect_status(TL_BAD_HANDLE, tl_tensor_shares_memory(y, x, &shares), "tl_tensor_shares_memory");
  tl_tensor* out = nullptr;
  const tl_arg arguments[] = {tl_arg_tensor(x)};
  expect_status(TL_BAD_HANDLE, tl_op("exp", arguments, 1, &out, 1, nullptr), "exp: ");
  tl_dl_managed* managed = nullptr;
  expect_status(TL_BAD_HANDLE, tl_tensor_to_dlpack(x, 0, &managed), "tl_tensor_to_dlpack");
  // Of another kind.
  expect_status(TL_BAD_HANDLE, tl_model_free(reinterpret_cast<tl_model*>(y)),
                "not the handle of a model");
  expect_status(TL_BAD_HANDLE, tl_chat_free(reinterpret_cast<tl_chat*>(y)),
                "not the handle of a chat");
}

TEST(CErrors, EachThreadHasItsOwnMessage) {
  expect_status(TL_BAD_HANDLE, tl_tensor_free(reinterpret_cast<tl_tensor*>(0x30)), "freed");
  std::string there = "?";
  std::thread([&] { there = tl_last_error(); }).join();
  EXPECT_EQ(there, "");
  EXPECT_NE(std::string(tl_last_error()), "");
  std::set<std::string> names;
  for (int status = TL_OK; status <= TL_INTERNAL; ++status) {
    names.insert(tl_status_name(status));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(TL_INTERNAL + 1));
  EXPECT_EQ(tl_status_name(99), std::string("unknown"));
}

TEST(CDevices, AreCountedParsedAndNamed) {
  int count = 0;
  TL_GOOD(tl_device_count(TL_CPU, &count));
  EXPECT_EQ(count, 1);
  tl_device device = {7, 7};
  TL_GOOD(tl_device_parse("cpu", &device));
  EXPECT_EQ(device.kind, TL_CPU);
  EXPECT_EQ(device.index, 0);
  TL_GOOD(tl_device_parse("auto", &device));
  char* name = nullptr;
  TL_GOOD(tl_device_name(device, &name));
  EXPECT_NE(std::string(name), "");
  tl_text_free(name);
  expect_status(TL_BAD_ARGUMENT, tl_device_parse("toaster", &device), "toaster");
  expect_status(TL_BAD_ARGUMENT, tl_device_parse(nullptr, &device), "text is null");
  expect_status(TL_BAD_ARGUMENT, tl_device_count(5, &count), "kind of device 5");
  TL_GOOD(tl_device_count(TL_CUDA, &count));
  const tl_status missing = tl_device_synchronize(tl_device{TL_CUDA, 99});
  EXPECT_EQ(missing, count > 0 ? TL_NO_SUCH_DEVICE : TL_DRIVER_MISSING) << tl_last_error();
  EXPECT_EQ(tl_version(), std::string(version()));
}

TEST(COps, AreListedOnce) {
  std::size_t count = 0;
  TL_GOOD(tl_op_count(&count));
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const char *name = nullptr, *signature = nullptr, *help = nullptr;
    TL_GOOD(tl_op_info(i, &name, &signature, &help));
    names.insert(name);
    EXPECT_EQ(signature[0], '(') << name;
    EXPECT_NE(std::strlen(help), 0U) << name;
  }
  EXPECT_EQ(names.size(), count);
  for (const char* name :
       {"add", "sub", "mul", "div", "matmul", "softmax", "relu", "gelu", "exp", "log", "sum",
        "mean", "reshape", "transpose", "slice", "cat", "einsum"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(CThreads, MayFreeWhileOthersRead) {
  const std::int64_t shape[] = {64};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        tl_tensor* x = nullptr;
        ASSERT_EQ(tl_tensor_zeros(TL_F32, shape, 1, tl_device{TL_CPU, 0}, &x), TL_OK);
        std::thread other([x] {
          float host[64];
          const tl_status status = tl_tensor_to_host(x, host, sizeof host);
          EXPECT_TRUE(status == TL_OK || status == TL_BAD_HANDLE) << tl_last_error();
        });
        EXPECT_EQ(tl_tensor_free(x), TL_OK);
        other.join();
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace tl::test
