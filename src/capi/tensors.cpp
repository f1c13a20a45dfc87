#include "capi/tensors.h"

#include <algorithm>
#include <array>
#include <string>

#include "tl/ops/copy.h"

namespace tl::capi {

static_assert(static_cast<int>(DType::U8) == TL_U8 && static_cast<int>(DType::F16) == TL_F16 &&
              static_cast<int>(DType::F32) == TL_F32 && static_cast<int>(DType::Bool) == TL_BOOL);
static_assert(Dims::kMax == TL_MAX_RANK);

HandleTable<tl_tensor, Tensor>& tensors() {
  // Never destroyed: a program may end with tensors that it did not free.
  static auto& table = *new HandleTable<tl_tensor, Tensor>("tensor");
  return table;
}

DType dtype_of_c(std::string_view function, std::int64_t dtype) {
  if (dtype < 0 || dtype >= kDTypeCount) {
    throw Error(ErrorKind::BadArgument, function, "there is no dtype ", dtype);
  }
  return static_cast<DType>(dtype);
}

Device device_of_c(std::string_view function, tl_device device) {
  if (device.kind < TL_CPU || device.kind > TL_ROCM) {
    throw Error(ErrorKind::BadArgument, function, "there is no kind of device ", device.kind);
  }
  if (device.index < 0 || (device.kind == TL_CPU && device.index != 0)) {
    throw Error(ErrorKind::BadArgument, function, "there is no device ", device.index, " of kind ",
                name(static_cast<DeviceKind>(device.kind)));
  }
  return Device::at({static_cast<DeviceKind>(device.kind), device.index});
}

tl_device to_c(DeviceLocation location) noexcept {
  return {static_cast<std::int32_t>(location.kind), location.index};
}

Shape shape_of_c(std::string_view function, const std::int64_t* shape, std::int64_t rank) {
  if (rank < 0 || rank > Dims::kMax) {
    throw Error(ErrorKind::BadArgument, function, "a rank of ", rank, " is not within 0 to ",
                Dims::kMax);
  }
  if (rank > 0) expect(shape, function, "shape");
  const Shape out(std::span(shape, static_cast<std::size_t>(rank)));
  element_count(function, out);  // throws for negative sizes and for too many elements
  return out;
}

namespace {

void copy_dims(std::string_view function, const Dims& dims, std::int64_t* out, int capacity) {
  if (dims.size() > capacity) {
    throw Error(ErrorKind::SizeMismatch, function, "room for ", capacity,
                " sizes, and the rank is ", dims.size());
  }
  if (!dims.empty()) std::copy(dims.begin(), dims.end(), expect(out, function, "the result"));
}

template <class Ask>
tl_status ask_tensor(const char* function, const tl_tensor* tensor, const void* result, Ask&& ask) {
  return guarded([&] {
    expect(result, function, "the result");
    ask(*tensors().get(function, tensor));
  });
}

std::span<const std::byte> bytes_of(std::string_view function, const void* data,
                                    std::uint64_t bytes) {
  if (bytes > 0) expect(data, function, "data");
  return {static_cast<const std::byte*>(data), bytes};
}

}  // namespace

}  // namespace tl::capi

namespace capi = tl::capi;

// ---- devices

tl_status tl_device_count(int kind, int* count) {
  return capi::guarded([&] {
    capi::expect(count, "tl_device_count", "count");
    if (kind < TL_CPU || kind > TL_ROCM) {
      throw tl::Error(tl::ErrorKind::BadArgument, "tl_device_count", "there is no kind of device ",
                      kind);
    }
    *count = tl::Device::count(static_cast<tl::DeviceKind>(kind));
  });
}

tl_status tl_device_parse(const char* text, tl_device* device) {
  return capi::guarded([&] {
    capi::expect(device, "tl_device_parse", "device");
    const char* given = capi::expect(text, "tl_device_parse", "text");
    *device = capi::to_c(tl::Device::parse(given).location());
  });
}

tl_status tl_device_name(tl_device device, char** name) {
  return capi::guarded([&] {
    capi::expect(name, "tl_device_name", "name");
    *name = capi::new_text(capi::device_of_c("tl_device_name", device).name());
  });
}

tl_status tl_device_synchronize(tl_device device) {
  return capi::guarded([&] { capi::device_of_c("tl_device_synchronize", device).synchronize(); });
}

// ---- making tensors

tl_status tl_tensor_from_data(const void* data, int dtype, const int64_t* shape, int rank,
                              tl_device device, tl_tensor** tensor) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_tensor_from_data";
    capi::expect(tensor, kWhere, "tensor");
    const tl::DType type = capi::dtype_of_c(kWhere, dtype);
    const tl::Shape sizes = capi::shape_of_c(kWhere, shape, rank);
    const std::uint64_t bytes = tl::checked_multiply(
        kWhere, static_cast<std::uint64_t>(tl::element_count(kWhere, sizes)), tl::size_of(type));
    *tensor = capi::tensors().put(tl::Tensor::from_bytes(capi::bytes_of(kWhere, data, bytes), type,
                                                         sizes, capi::device_of_c(kWhere, device)));
  });
}

tl_status tl_tensor_zeros(int dtype, const int64_t* shape, int rank, tl_device device,
                          tl_tensor** tensor) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_tensor_zeros";
    capi::expect(tensor, kWhere, "tensor");
    *tensor = capi::tensors().put(tl::Tensor::zeros(capi::shape_of_c(kWhere, shape, rank),
                                                    capi::dtype_of_c(kWhere, dtype),
                                                    capi::device_of_c(kWhere, device)));
  });
}

tl_status tl_tensor_free(tl_tensor* tensor) {
  return capi::guarded([&] { capi::tensors().drop("tl_tensor_free", tensor); });
}

tl_status tl_tensor_clone(const tl_tensor* tensor, tl_tensor** clone) {
  return capi::ask_tensor("tl_tensor_clone", tensor, clone,
                          [&](const tl::Tensor& x) { *clone = capi::tensors().put(x); });
}

// ---- asking

tl_status tl_tensor_dtype(const tl_tensor* tensor, tl_dtype* dtype) {
  return capi::ask_tensor("tl_tensor_dtype", tensor, dtype,
                          [&](const tl::Tensor& x) { *dtype = static_cast<tl_dtype>(x.dtype()); });
}

tl_status tl_tensor_device(const tl_tensor* tensor, tl_device* device) {
  return capi::ask_tensor("tl_tensor_device", tensor, device,
                          [&](const tl::Tensor& x) { *device = capi::to_c(x.location()); });
}

tl_status tl_tensor_rank(const tl_tensor* tensor, int* rank) {
  return capi::ask_tensor("tl_tensor_rank", tensor, rank,
                          [&](const tl::Tensor& x) { *rank = x.rank(); });
}

tl_status tl_tensor_shape(const tl_tensor* tensor, int64_t* shape, int capacity) {
  return capi::guarded([&] {
    const auto x = capi::tensors().get("tl_tensor_shape", tensor);
    capi::copy_dims("tl_tensor_shape", x->shape(), shape, capacity);
  });
}

tl_status tl_tensor_strides(const tl_tensor* tensor, int64_t* strides, int capacity) {
  return capi::guarded([&] {
    const auto x = capi::tensors().get("tl_tensor_strides", tensor);
    capi::copy_dims("tl_tensor_strides", x->strides(), strides, capacity);
  });
}

tl_status tl_tensor_count(const tl_tensor* tensor, int64_t* elements) {
  return capi::ask_tensor("tl_tensor_count", tensor, elements,
                          [&](const tl::Tensor& x) { *elements = x.count(); });
}

tl_status tl_tensor_size_bytes(const tl_tensor* tensor, uint64_t* bytes) {
  return capi::ask_tensor("tl_tensor_size_bytes", tensor, bytes,
                          [&](const tl::Tensor& x) { *bytes = x.size_bytes(); });
}

tl_status tl_tensor_shares_memory(const tl_tensor* a, const tl_tensor* b, int* shares) {
  return capi::ask_tensor("tl_tensor_shares_memory", a, shares, [&](const tl::Tensor& x) {
    const auto other = capi::tensors().get("tl_tensor_shares_memory", b);
    *shares = x.shares_memory_with(*other) ? 1 : 0;
  });
}

tl_status tl_tensor_text(const tl_tensor* tensor, char** text) {
  return capi::ask_tensor("tl_tensor_text", tensor, text,
                          [&](const tl::Tensor& x) { *text = capi::new_text(x.text()); });
}

// ---- moving elements

tl_status tl_tensor_to_device(const tl_tensor* tensor, tl_device device, tl_tensor** moved) {
  return capi::ask_tensor("tl_tensor_to_device", tensor, moved, [&](const tl::Tensor& x) {
    *moved = capi::tensors().put(tl::to(x, capi::device_of_c("tl_tensor_to_device", device)));
  });
}

tl_status tl_tensor_to_host(const tl_tensor* tensor, void* data, uint64_t bytes) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_tensor_to_host";
    const auto x = capi::tensors().get(kWhere, tensor);
    if (bytes != x->size_bytes()) {
      throw tl::Error(tl::ErrorKind::SizeMismatch, kWhere, "room for ", bytes,
                      " bytes, and the tensor has ", x->size_bytes());
    }
    if (bytes > 0) capi::expect(data, kWhere, "data");
    x->read_bytes({static_cast<std::byte*>(data), bytes});
  });
}

tl_status tl_tensor_write(tl_tensor* tensor, const void* data, uint64_t bytes) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_tensor_write";
    const auto x = capi::tensors().get(kWhere, tensor);
    if (bytes != x->size_bytes()) {
      throw tl::Error(tl::ErrorKind::SizeMismatch, kWhere, bytes,
                      " bytes are given, and the tensor has ", x->size_bytes());
    }
    const tl::Tensor from = tl::Tensor::from_bytes(capi::bytes_of(kWhere, data, bytes), x->dtype(),
                                                   x->shape(), x->device());
    tl::assign(*x, from);
  });
}
