// Memory shared through DLPack, both ways.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "capi/support.h"

namespace tl::test {
namespace {

// Someone else's tensor on the CPU, which counts how often its deleter was called.
template <class Managed>
struct Foreign {
  std::vector<float> values;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  int deleted = 0;
  Managed managed{};

  Foreign(std::vector<float> v, std::vector<std::int64_t> s, std::vector<std::int64_t> st = {})
      : values(std::move(v)), shape(std::move(s)), strides(std::move(st)) {
    tl_dl_tensor& to = managed.tensor;
    to.data = values.data();
    to.device = {TL_DL_CPU, 0};
    to.rank = static_cast<std::int32_t>(shape.size());
    to.dtype = {TL_DL_FLOAT, 32, 1};
    to.shape = shape.data();
    to.strides = strides.empty() ? nullptr : strides.data();
    managed.context = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->context)->deleted; };
    if constexpr (std::is_same_v<Managed, tl_dl_versioned>) {
      managed.version = {1, 1};
      managed.flags = TL_DL_FLAG_READ_ONLY;
    }
  }
};

class Dlpack : public OnEveryDeviceInC {};
TL_ON_EVERY_DEVICE(Dlpack);

TEST_P(Dlpack, ExportsShareAndPin) {
  Handle x = floats({1, 2, 3, 4, 5, 6}, {2, 3}, device());
  const tl_memory_use before = use();
  tl_dl_managed* managed = nullptr;
  TL_GOOD(tl_tensor_to_dlpack(x, 0, &managed));
  EXPECT_EQ(use().live_bytes, before.live_bytes) << "an export is no copy";
  const int kinds[] = {TL_DL_CPU, TL_DL_CUDA, TL_DL_ROCM};
  EXPECT_EQ(managed->tensor.device.type, kinds[static_cast<int>(device().kind())]);
  EXPECT_EQ(managed->tensor.device.id, 0);
  EXPECT_EQ(managed->tensor.rank, 2);
  EXPECT_EQ(managed->tensor.dtype.code, TL_DL_FLOAT);
  EXPECT_EQ(managed->tensor.dtype.bits, 32);
  EXPECT_EQ(managed->tensor.dtype.lanes, 1);
  EXPECT_EQ(managed->tensor.shape[1], 3);
  EXPECT_EQ(managed->tensor.strides[0], 3);
  EXPECT_EQ(managed->tensor.byte_offset, 0U);
  // A write goes elsewhere, and a freed handle leaves the memory where it is.
  const float others[] = {9, 9, 9, 9, 9, 9};
  TL_GOOD(tl_tensor_write(x, others, sizeof others));
  x = Handle();
  Handle seen;
  TL_GOOD(tl_tensor_from_dlpack(managed, seen.out()));  // now `seen` has the struct
  EXPECT_EQ(values_of(seen), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_P(Dlpack, AnExportThatNobodyTakesIsDeleted) {
  const Handle x = floats({1, 2}, {2}, device());
  tl_dl_versioned* managed = nullptr;
  TL_GOOD(tl_tensor_to_dlpack_versioned(x, 0, &managed));
  EXPECT_EQ(managed->version.major, 1U);
  EXPECT_EQ(managed->flags, TL_DL_FLAG_READ_ONLY);
  managed->deleter(managed);
}

TEST_P(Dlpack, ACopyMayBeWritten) {
  const Handle x = floats({1, 2}, {2}, device());
  tl_dl_versioned* managed = nullptr;
  TL_GOOD(tl_tensor_to_dlpack_versioned(x, TL_DLPACK_COPY, &managed));
  EXPECT_EQ(managed->flags, TL_DL_FLAG_IS_COPIED);
  if (device().is_cpu()) static_cast<float*>(managed->tensor.data)[0] = 5;
  EXPECT_EQ(values_of(x), (std::vector<float>{1, 2}));
  managed->deleter(managed);
}

TEST_P(Dlpack, ViewsHaveTheirOffsetAndStrides) {
  const Handle x = floats({1, 2, 3, 4, 5, 6}, {2, 3}, device());
  const Handle part =
      op("narrow", {tl_arg_tensor(x), tl_arg_integer(1), tl_arg_integer(1), tl_arg_integer(2)});
  tl_dl_managed* managed = nullptr;
  TL_GOOD(tl_tensor_to_dlpack(part, 0, &managed));
  EXPECT_EQ(managed->tensor.strides[0], 3);
  EXPECT_EQ(managed->tensor.strides[1], 1);
  Handle seen;
  TL_GOOD(tl_tensor_from_dlpack(managed, seen.out()));
  EXPECT_EQ(values_of(seen), (std::vector<float>{2, 3, 5, 6}));
}

// On a GPU what was asked of the borrowed memory may still run when its last handle goes.
TEST_P(Dlpack, BorrowedMemoryOutlivesTheWorkOnIt) {
  const Handle x = floats(std::vector<float>(256, 2), {256}, device());
  tl_dl_managed* managed = nullptr;
  TL_GOOD(tl_tensor_to_dlpack(x, 0, &managed));
  tl_tensor* seen = nullptr;
  TL_GOOD(tl_tensor_from_dlpack(managed, &seen));
  EXPECT_EQ(use().mapped_bytes, 1024U);
  const Handle product = op("mul", {tl_arg_tensor(seen), tl_arg_tensor(seen)});
  TL_GOOD(tl_tensor_free(seen));
  EXPECT_EQ(use().mapped_bytes, 0U);
  EXPECT_EQ(values_of(product), std::vector<float>(256, 4));
}

TEST_P(Dlpack, AWriteToBorrowedMemoryLeavesIt) {
  const Handle x = floats({1, 2}, {2}, device());
  tl_dl_managed* managed = nullptr;
  TL_GOOD(tl_tensor_to_dlpack(x, 0, &managed));
  Handle seen;
  TL_GOOD(tl_tensor_from_dlpack(managed, seen.out()));
  const float other[] = {3, 4};
  TL_GOOD(tl_tensor_write(seen, other, sizeof other));
  EXPECT_EQ(use().mapped_bytes, 0U) << "the last one that showed it has left";
  EXPECT_EQ(values_of(x), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of(seen), (std::vector<float>{3, 4}));
}

TEST_P(Dlpack, EmptyTensorsAndSingleNumbers) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{0, 3}, std::vector<std::int64_t>{}}) {
    const Handle x = floats({4}, shape, device());
    tl_dl_managed* managed = nullptr;
    TL_GOOD(tl_tensor_to_dlpack(x, 0, &managed));
    Handle seen;
    TL_GOOD(tl_tensor_from_dlpack(managed, seen.out()));
    EXPECT_EQ(shape_of(seen), shape);
    EXPECT_EQ(values_of(seen), values_of(x));
  }
}

TEST(DlpackImport, BorrowsAndDeletesOnce) {
  Foreign<tl_dl_managed> foreign({1, 2, 3, 4}, {2, 2});
  tl_tensor* x = nullptr;
  TL_GOOD(tl_tensor_from_dlpack(&foreign.managed, &x));
  foreign.values[0] = 8;  // the memory is theirs
  EXPECT_EQ(values_of(x), (std::vector<float>{8, 2, 3, 4}));
  tl_tensor* clone = nullptr;
  TL_GOOD(tl_tensor_clone(x, &clone));
  const Handle row = op("select", {tl_arg_tensor(x), tl_arg_integer(0), tl_arg_integer(1)});
  TL_GOOD(tl_tensor_free(x));
  TL_GOOD(tl_tensor_free(clone));
  EXPECT_EQ(foreign.deleted, 0) << "a view still shows it";
  EXPECT_EQ(values_of(row), (std::vector<float>{3, 4}));
  const float other[] = {0, 0};
  TL_GOOD(tl_tensor_write(row, other, sizeof other));
  EXPECT_EQ(foreign.deleted, 1);
  EXPECT_EQ(foreign.values, (std::vector<float>{8, 2, 3, 4})) << "and was never written";
}

TEST(DlpackImport, TheVersionedStructToo) {
  Foreign<tl_dl_versioned> foreign({1, 2, 3, 4}, {4});
  foreign.managed.tensor.byte_offset = 4;
  foreign.shape[0] = 3;
  {
    Handle x;
    TL_GOOD(tl_tensor_from_dlpack_versioned(&foreign.managed, x.out()));
    EXPECT_EQ(values_of(x), (std::vector<float>{2, 3, 4}));
  }
  EXPECT_EQ(foreign.deleted, 1);
  foreign.managed.version.major = 2;
  tl_tensor* none = nullptr;
  expect_status(TL_UNSUPPORTED, tl_tensor_from_dlpack_versioned(&foreign.managed, &none),
                "DLPack 2.1 is not known");
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(DlpackImport, StridesOfEveryKind) {
  {  // columns first
    Foreign<tl_dl_managed> foreign({1, 2, 3, 4, 5, 6}, {2, 3}, {1, 2});
    Handle x;
    TL_GOOD(tl_tensor_from_dlpack(&foreign.managed, x.out()));
    EXPECT_EQ(values_of(x), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  }
  {  // repeated
    Foreign<tl_dl_managed> foreign({1, 2}, {3, 2}, {0, 1});
    Handle x;
    TL_GOOD(tl_tensor_from_dlpack(&foreign.managed, x.out()));
    EXPECT_EQ(values_of(x), (std::vector<float>{1, 2, 1, 2, 1, 2}));
  }
  {  // backwards: a copy, so the struct is done with at once
    Foreign<tl_dl_managed> foreign({1, 2, 3, 4, 5, 6}, {2, 3}, {3, -1});
    foreign.managed.tensor.byte_offset = 2 * sizeof(float);
    Handle x;
    TL_GOOD(tl_tensor_from_dlpack(&foreign.managed, x.out()));
    EXPECT_EQ(values_of(x), (std::vector<float>{3, 2, 1, 6, 5, 4}));
    EXPECT_EQ(foreign.deleted, 1);
  }
  {  // a stride of one element says nothing
    Foreign<tl_dl_managed> foreign({1, 2}, {1, 2}, {INT64_MIN, 1});
    Handle x;
    TL_GOOD(tl_tensor_from_dlpack(&foreign.managed, x.out()));
    EXPECT_EQ(values_of(x), (std::vector<float>{1, 2}));
  }
}

TEST(DlpackImport, WhatFailsStaysTheCallers) {
  Foreign<tl_dl_managed> foreign({1, 2, 3, 4}, {4});
  tl_dl_tensor& tensor = foreign.managed.tensor;
  tl_tensor* none = nullptr;
  const auto refuse = [&](tl_status status, const char* message) {
    expect_status(status, tl_tensor_from_dlpack(&foreign.managed, &none), message);
    EXPECT_EQ(foreign.deleted, 0) << message;
    EXPECT_EQ(none, nullptr);
  };
  tensor.dtype = {5, 64, 1};
  refuse(TL_UNSUPPORTED, "no dtype is like DLPack's code 5 with 64 bits");
  tensor.dtype = {TL_DL_FLOAT, 32, 4};
  refuse(TL_UNSUPPORTED, "4 lanes");
  tensor.dtype = {TL_DL_FLOAT, 32, 1};
  tensor.device.type = 4;
  refuse(TL_UNSUPPORTED, "device type 4");
  tensor.device.type = TL_DL_CPU;
  tensor.rank = 9;
  refuse(TL_BAD_ARGUMENT, "a rank of 9");
  tensor.rank = 1;
  tensor.byte_offset = 2;
  refuse(TL_UNSUPPORTED, "not aligned");
  tensor.byte_offset = 0;
  std::int64_t far[] = {INT64_MAX / 2};
  tensor.strides = far;
  refuse(TL_OVERFLOW, "reaches too far");
  far[0] = INT64_MIN + 1;
  refuse(TL_OVERFLOW, "reach too far");
  tensor.strides = nullptr;
  tensor.data = nullptr;
  refuse(TL_BAD_ARGUMENT, "no data");
  expect_status(TL_BAD_ARGUMENT, tl_tensor_from_dlpack(nullptr, &none), "managed is null");
  const Handle x = floats({1}, {1}, Device::cpu());
  tl_dl_managed* managed = nullptr;
  expect_status(TL_BAD_ARGUMENT, tl_tensor_to_dlpack(x, 8, &managed), "there are no flags 8");
  expect_status(TL_BAD_ARGUMENT, tl_tensor_to_dlpack(x, 0, nullptr), "managed is null");
}

TEST(DlpackImport, EveryDtypeComesBack) {
  const std::int64_t shape[] = {4};
  for (int dtype = TL_U8; dtype <= TL_BOOL; ++dtype) {
    Handle x;
    TL_GOOD(tl_tensor_zeros(dtype, shape, 1, tl_device{TL_CPU, 0}, x.out()));
    tl_dl_managed* managed = nullptr;
    TL_GOOD(tl_tensor_to_dlpack(x, 0, &managed));
    Handle back;
    TL_GOOD(tl_tensor_from_dlpack(managed, back.out()));
    tl_dtype got{};
    TL_GOOD(tl_tensor_dtype(back, &got));
    EXPECT_EQ(got, dtype);
  }
}

}  // namespace
}  // namespace tl::test
