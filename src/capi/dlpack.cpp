// DLPack both ways: Tallow's memory shown to others, and others' memory as tensors.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "capi/tensors.h"
#include "tl/ops/copy.h"
#include "tl/ops/join.h"

namespace tl::capi {

namespace {

static_assert(sizeof(tl_dl_tensor) == 48 && sizeof(tl_dl_managed) == 64);
static_assert(sizeof(tl_dl_versioned) == 80 && offsetof(tl_dl_versioned, tensor) == 32);

constexpr tl_dl_version kDlpackVersion = {1, 0};

struct DlpackType {
  DType dtype;
  std::uint8_t code;
};
constexpr std::array<DlpackType, kDTypeCount> kDlpackTypes = {{{DType::U8, TL_DL_UINT},
                                                               {DType::U32, TL_DL_UINT},
                                                               {DType::I16, TL_DL_INT},
                                                               {DType::I32, TL_DL_INT},
                                                               {DType::I64, TL_DL_INT},
                                                               {DType::F8E4M3, TL_DL_FLOAT8_E4M3FN},
                                                               {DType::F16, TL_DL_FLOAT},
                                                               {DType::BF16, TL_DL_BFLOAT},
                                                               {DType::F32, TL_DL_FLOAT},
                                                               {DType::F64, TL_DL_FLOAT},
                                                               {DType::Bool, TL_DL_BOOL}}};

tl_dl_dtype dlpack_type(DType dtype) noexcept {
  const DlpackType& row = kDlpackTypes[static_cast<std::size_t>(dtype)];
  return {row.code, static_cast<std::uint8_t>(bits_of(dtype)), 1};
}

DType dtype_of_dlpack(std::string_view function, tl_dl_dtype given) {
  for (const DlpackType& row : kDlpackTypes) {
    if (given.lanes == 1 && row.code == given.code && bits_of(row.dtype) == given.bits) {
      return row.dtype;
    }
  }
  throw Error(ErrorKind::Unsupported, function, "no dtype is like DLPack's code ",
              static_cast<int>(given.code), " with ", static_cast<int>(given.bits), " bits and ",
              given.lanes, " lanes");
}

std::int32_t dlpack_device(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::Cuda:
      return TL_DL_CUDA;
    case DeviceKind::Rocm:
      return TL_DL_ROCM;
    case DeviceKind::Cpu:
      break;
  }
  return TL_DL_CPU;
}

Device device_of_dlpack(std::string_view function, tl_dl_device given) {
  switch (given.type) {
    case TL_DL_CPU:
    case TL_DL_CUDA_HOST:
    case TL_DL_ROCM_HOST:
      return Device::cpu();
    case TL_DL_CUDA:
    case TL_DL_CUDA_MANAGED:
      return Device::cuda(given.id);
    case TL_DL_ROCM:
      return Device::rocm(given.id);
    default:
      throw Error(ErrorKind::Unsupported, function, "memory on DLPack's device type ", given.type,
                  " is not known");
  }
}

// ---- to others

// What an exported struct points to, and the share of the memory that pins it.
template <class Managed>
struct Exported {
  Tensor tensor;
  std::array<std::int64_t, TL_MAX_RANK> shape{};
  std::array<std::int64_t, TL_MAX_RANK> strides{};
  Managed managed{};
};

template <class Managed>
Managed* export_tensor(std::string_view function, const tl_tensor* handle, int flags) {
  if ((flags & ~TL_DLPACK_COPY) != 0) {
    throw Error(ErrorKind::BadArgument, function, "there are no flags ", flags);
  }
  const bool copies = (flags & TL_DLPACK_COPY) != 0;
  auto out = std::make_unique<Exported<Managed>>();
  const Tensor& x = *tensors().get(function, handle);
  out->tensor = copies ? copy(x.detach()) : x.detach();
  const Tensor& shown = out->tensor;
  if (shown.location().is_gpu()) shown.device().synchronize();
  std::copy(shown.shape().begin(), shown.shape().end(), out->shape.begin());
  std::copy(shown.strides().begin(), shown.strides().end(), out->strides.begin());
  tl_dl_tensor& to = out->managed.tensor;
  if (!shown.empty()) {
    const std::byte* first =
        shown.memory().data() +
        static_cast<std::uint64_t>(shown.layout().offset()) * size_of(shown.dtype());
    to.data = const_cast<std::byte*>(first);  // NOLINT: the struct has no const; who reads is told
  }
  to.device = {dlpack_device(shown.location().kind), shown.location().index};
  to.rank = shown.rank();
  to.dtype = dlpack_type(shown.dtype());
  to.shape = out->shape.data();
  to.strides = out->strides.data();
  out->managed.context = out.get();
  out->managed.deleter = [](Managed* self) {
    if (self != nullptr)
      delete static_cast<Exported<Managed>*>(self->context);  // NOLINT: released below
  };
  if constexpr (std::is_same_v<Managed, tl_dl_versioned>) {
    out->managed.version = kDlpackVersion;
    out->managed.flags = copies ? TL_DL_FLAG_IS_COPIED : TL_DL_FLAG_READ_ONLY;
  }
  return &out.release()->managed;
}

// ---- from others

// Keeps borrowed memory. Until it is armed the struct is still its producer's.
template <class Managed>
class Borrowed {
 public:
  explicit Borrowed(Managed* managed) noexcept : managed_(managed) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    if (armed_ && managed_->deleter != nullptr) managed_->deleter(managed_);
  }
  void arm() noexcept { armed_ = true; }

 private:
  Managed* managed_;
  bool armed_ = false;
};

// Where the elements are: Tallow's strides are never negative, so dimensions that run backwards are
// shown forwards first.
struct ForeignLayout {
  Layout layout;
  Dims backwards;                 // dimensions to turn around
  std::uint64_t elements = 0;     // from the lowest to the highest
  std::int64_t first_offset = 0;  // of the lowest from the first one, in elements, at most 0
};

ForeignLayout read_layout(std::string_view function, const tl_dl_tensor& given) {
  const Shape shape = shape_of_c(function, given.shape, given.rank);
  ForeignLayout out{.layout = Layout(shape), .backwards = {}, .elements = 0, .first_offset = 0};
  if (out.layout.count() == 0) return out;
  if (given.strides != nullptr) {
    Dims strides;
    for (int d = 0; d < shape.size(); ++d) {
      std::int64_t stride = given.strides[d];
      if (shape[d] == 1) stride = 0;  // says nothing, and some producers leave it wild
      if (stride == INT64_MIN) throw Error(ErrorKind::Overflow, function, "a stride is too large");
      if (stride < 0) {
        out.backwards.push_back(d);
        std::int64_t reach = 0;
        if (__builtin_mul_overflow(stride, shape[d] - 1, &reach) ||
            __builtin_add_overflow(out.first_offset, reach, &out.first_offset)) {
          throw Error(ErrorKind::Overflow, function, "strides reach too far");
        }
      }
      strides.push_back(stride < 0 ? -stride : stride);
    }
    // Of any use only when it fits in the address space, which also keeps extent() from
    // overflowing.
    out.layout = Layout(shape, strides, 0);
    if (!out.layout.fits(std::int64_t{1} << 57)) {
      throw Error(ErrorKind::Overflow, function, "shape ", shape, " with strides ", strides,
                  " reaches too far");
    }
  }
  out.elements = static_cast<std::uint64_t>(out.layout.extent());
  return out;
}

const std::byte* first_byte(std::string_view function, const tl_dl_tensor& given, DType dtype) {
  if (given.data == nullptr) {
    throw Error(ErrorKind::BadArgument, function, "the tensor has elements and no data");
  }
  const auto* first = static_cast<const std::byte*>(given.data) + given.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(first) % size_of(dtype) != 0) {
    throw Error(ErrorKind::Unsupported, function, "the elements are not aligned to their ",
                size_of(dtype), " bytes");
  }
  return first;
}

template <class Managed>
tl_tensor* import_tensor(std::string_view function, Managed* managed) {
  const tl_dl_tensor& given = expect(managed, function, "managed")->tensor;
  if constexpr (std::is_same_v<Managed, tl_dl_versioned>) {
    if (managed->version.major != kDlpackVersion.major) {
      throw Error(ErrorKind::Unsupported, function, "DLPack ", managed->version.major, ".",
                  managed->version.minor, " is not known; ", kDlpackVersion.major, ".x is");
    }
  }
  const DType dtype = dtype_of_dlpack(function, given.dtype);
  const Device device = device_of_dlpack(function, given.device);
  const ForeignLayout foreign = read_layout(function, given);
  const auto keeper = std::make_shared<Borrowed<Managed>>(managed);
  Tensor tensor;
  if (foreign.layout.count() == 0) {
    tensor = Tensor::uninitialized(foreign.layout.shape(), dtype, device);
  } else {
    const std::byte* lowest = first_byte(function, given, dtype) +
                              foreign.first_offset * static_cast<std::int64_t>(size_of(dtype));
    tensor = Tensor::from_memory(
        RawMemory::borrowed(device, keeper, {lowest, foreign.elements * size_of(dtype)}), dtype,
        foreign.layout);
    if (!foreign.backwards.empty()) tensor = flip(tensor, foreign.backwards);
  }
  tl_tensor* handle = tensors().put(std::move(tensor));
  keeper->arm();
  return handle;
}

}  // namespace

}  // namespace tl::capi

namespace capi = tl::capi;

tl_status tl_tensor_to_dlpack(const tl_tensor* tensor, int flags, tl_dl_managed** managed) {
  return capi::guarded([&] {
    capi::expect(managed, "tl_tensor_to_dlpack", "managed");
    *managed = capi::export_tensor<tl_dl_managed>("tl_tensor_to_dlpack", tensor, flags);
  });
}

tl_status tl_tensor_to_dlpack_versioned(const tl_tensor* tensor, int flags,
                                        tl_dl_versioned** managed) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_tensor_to_dlpack_versioned";
    capi::expect(managed, kWhere, "managed");
    *managed = capi::export_tensor<tl_dl_versioned>(kWhere, tensor, flags);
  });
}

tl_status tl_tensor_from_dlpack(tl_dl_managed* managed, tl_tensor** tensor) {
  return capi::guarded([&] {
    capi::expect(tensor, "tl_tensor_from_dlpack", "tensor");
    *tensor = capi::import_tensor("tl_tensor_from_dlpack", managed);
  });
}

tl_status tl_tensor_from_dlpack_versioned(tl_dl_versioned* managed, tl_tensor** tensor) {
  return capi::guarded([&] {
    capi::expect(tensor, "tl_tensor_from_dlpack_versioned", "tensor");
    *tensor = capi::import_tensor("tl_tensor_from_dlpack_versioned", managed);
  });
}
