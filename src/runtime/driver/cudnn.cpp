// Convolutions by cuDNN (8.2 and later, 9), opened at run time and used through its graph API:
// descriptors are filled attribute by attribute, the library's heuristics propose engines, the best
// first, and the first one that keeps our rules and builds becomes the plan. Numbers are those of
// cudnn_graph.h.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/dnn.h"
#include "runtime/driver/library.h"
#include "tl/base/error.h"

namespace tl::driver {

namespace {

using Descriptor = void*;

struct Raw {
  std::size_t (*version)();
  Status (*create)(Handle* handle);
  Status (*destroy)(Handle handle);
  Status (*set_stream)(Handle handle, Handle stream);
  Status (*create_descriptor)(int type, Descriptor* descriptor);
  Status (*destroy_descriptor)(Descriptor descriptor);
  Status (*finalize)(Descriptor descriptor);
  Status (*set_attribute)(Descriptor descriptor, int name, int type, std::int64_t count,
                          const void* elements);
  Status (*get_attribute)(Descriptor descriptor, int name, int type, std::int64_t room,
                          std::int64_t* count, void* elements);
  Status (*execute)(Handle handle, Descriptor plan, Descriptor variant_pack);
};
Raw raw;

// Descriptors.
constexpr int kConvolution = 1;
constexpr int kEngine = 2;
constexpr int kEngineConfig = 3;
constexpr int kEngineHeuristics = 4;
constexpr int kExecutionPlan = 5;
constexpr int kForward = 10;
constexpr int kBackwardData = 12;
constexpr int kOperationGraph = 15;
constexpr int kVariantPack = 16;
constexpr int kTensor = 17;

// Types of attributes.
constexpr int kTypeHandle = 0;
constexpr int kTypeDataType = 1;
constexpr int kTypeInt64 = 3;
constexpr int kTypeFloat = 4;
constexpr int kTypeDouble = 5;
constexpr int kTypePointer = 6;
constexpr int kTypeConvolutionMode = 7;
constexpr int kTypeHeuristicsMode = 8;
constexpr int kTypeNumericalNote = 11;
constexpr int kTypeDescriptor = 15;

constexpr std::int64_t kAlignment = 16;  // bytes; the caller keeps it
constexpr std::size_t kMostWorkspace = std::size_t{4} << 30;

class Owned {
 public:
  explicit Owned(int type) : ok_(raw.create_descriptor(type, &descriptor_) == kSuccess) {}
  ~Owned() {
    if (descriptor_ != nullptr) raw.destroy_descriptor(descriptor_);
  }
  Owned(Owned&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), ok_(other.ok_) {}
  Owned& operator=(Owned&&) = delete;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  Descriptor get() const noexcept { return descriptor_; }
  bool ok() const noexcept { return ok_; }

  // After a failure the rest does nothing, and finalize() says so.
  Owned& set(int name, int type, std::int64_t count, const void* elements) {
    ok_ = ok_ && raw.set_attribute(descriptor_, name, type, count, elements) == kSuccess;
    return *this;
  }
  template <class T>
  Owned& set(int name, int type, const T& value) {
    return set(name, type, 1, &value);
  }
  Owned& set(int name, int type, const std::vector<std::int64_t>& values) {
    return set(name, type, static_cast<std::int64_t>(values.size()), values.data());
  }
  Owned& set(int name, const Owned& other) {
    ok_ = ok_ && other.ok();
    const Descriptor descriptor = other.get();
    return set(name, kTypeDescriptor, descriptor);
  }
  bool finalize() {
    ok_ = ok_ && raw.finalize(descriptor_) == kSuccess;
    return ok_;
  }

 private:
  Descriptor descriptor_ = nullptr;
  bool ok_ = false;
};

// The library's number of a dtype; -1 for one it is not asked for.
int data_type(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return 0;
    case DType::F64:
      return 1;
    case DType::F16:
      return 2;
    case DType::BF16:
      return 9;
    default:
      return -1;
  }
}

// The channels are dimension 1 of the shape, wherever they lie in memory.
Owned tensor(std::int64_t id, int type, const std::vector<std::int64_t>& shape,
             bool channels_last = false) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  std::int64_t step = channels_last ? shape[1] : 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (channels_last && d == 1) continue;
    strides[d] = step;
    step *= shape[d];
  }
  Owned result(kTensor);
  result.set(901, kTypeDataType, type)
      .set(902, kTypeInt64, shape)
      .set(903, kTypeInt64, strides)
      .set(906, kTypeInt64, id)
      .set(900, kTypeInt64, kAlignment)
      .finalize();
  return result;
}

// Sums of small floats in less than f32, f32 inputs cut to fewer bits, transforms that lose digits,
// and results that depend on the order of threads are not for us.
bool keeps_our_rules(const Owned& config, DType dtype) {
  constexpr std::int64_t kMostNotes = 16;
  const Owned engine(kEngine);
  Descriptor descriptor = engine.get();
  std::array<int, kMostNotes> notes{};
  std::int64_t count = 0;
  if (!engine.ok() ||
      raw.get_attribute(config.get(), 300, kTypeDescriptor, 1, &count, &descriptor) != kSuccess ||
      raw.get_attribute(descriptor, 1303, kTypeNumericalNote, kMostNotes, &count, notes.data()) !=
          kSuccess) {
    return false;
  }
  return std::none_of(notes.begin(), notes.begin() + std::min(count, kMostNotes), [&](int note) {
    constexpr int kTensorCore = 0;
    switch (note) {
      case kTensorCore:  // f32 on tensor cores is TF32
        return dtype == DType::F32;
      case 1:  // inputs are converted down
      case 2:  // reduced-precision reduction
      case 3:  // FFT
      case 4:  // not deterministic
      case 7:  // Winograd with tiles of 6 x 6
      case 8:  // and of 13 x 13
        return true;
      default:
        return false;
    }
  });
}

class Plan final : public ConvolutionPlan {
 public:
  Plan(Handle handle, std::vector<Owned> parts, Owned plan, std::size_t workspace)
      : handle_(handle), parts_(std::move(parts)), plan_(std::move(plan)), workspace_(workspace) {}

  std::size_t workspace_bytes() const noexcept override { return workspace_; }

  bool run(Handle stream, const void* x, const void* kernel, void* y, void* workspace) override {
    if (raw.set_stream(handle_, stream) != kSuccess) return false;
    const std::array<const void*, 3> data{x, kernel, y};
    const std::array<std::int64_t, 3> ids{'x', 'w', 'y'};
    Owned pack(kVariantPack);
    pack.set(1000, kTypeInt64, 3, ids.data())
        .set(1001, kTypePointer, 3, data.data())
        .set(1003, kTypePointer, workspace);
    return pack.finalize() && raw.execute(handle_, plan_.get(), pack.get()) == kSuccess;
  }

 private:
  Handle handle_;
  std::vector<Owned> parts_;  // what the plan was made of, in case it looks back
  Owned plan_;
  std::size_t workspace_;
};

class Session final : public DnnSession {
 public:
  explicit Session(Handle handle) : handle_(handle) {}
  ~Session() override { raw.destroy(handle_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::unique_ptr<ConvolutionPlan> plan(const Convolution& c) override {
    const int type = data_type(c.dtype);
    if (type < 0) return nullptr;
    std::vector<Owned> parts = describe(c, type);
    const Owned graph = graph_of(parts.back());
    if (!graph.ok()) return nullptr;
    for (const int mode : {3, 2}) {  // mode A, then the engines that take everything
      if (auto plan = first_plan(graph, mode, c.dtype, parts)) return plan;
    }
    return nullptr;
  }

 private:
  // The tensors, the convolution, and last the operation. One that failed makes the last fail.
  static std::vector<Owned> describe(const Convolution& c, int type) {
    std::vector<std::int64_t> x{c.batch, c.groups * c.in_channels};
    std::vector<std::int64_t> y{c.batch, c.groups * c.out_channels};
    std::vector<std::int64_t> w = c.transposed
                                      ? std::vector{c.groups * c.in_channels, c.out_channels}
                                      : std::vector{c.groups * c.out_channels, c.in_channels};
    std::vector<std::int64_t> padding;
    std::vector<std::int64_t> stride;
    std::vector<std::int64_t> dilation;
    const bool flat = c.axes[0] == ConvolutionAxis{};
    for (std::size_t d = flat ? 1 : 0; d < c.axes.size(); ++d) {
      x.push_back(c.axes[d].in);
      y.push_back(c.axes[d].out);
      w.push_back(c.axes[d].kernel);
      padding.push_back(c.axes[d].padding);
      stride.push_back(c.axes[d].stride);
      dilation.push_back(c.axes[d].dilation);
    }
    const int compute = c.dtype == DType::F64 ? 1 : 0;
    const int cross_correlation = 1;
    const auto spatial = static_cast<std::int64_t>(padding.size());
    std::vector<Owned> parts;
    parts.push_back(tensor('x', type, x, c.channels_last));
    parts.push_back(tensor('w', type, w, c.channels_last));
    parts.push_back(tensor('y', type, y));
    parts.emplace_back(kConvolution);
    parts.back()
        .set(100, kTypeDataType, compute)
        .set(101, kTypeConvolutionMode, cross_correlation)
        .set(102, kTypeInt64, dilation)
        .set(103, kTypeInt64, stride)
        .set(104, kTypeInt64, padding)
        .set(105, kTypeInt64, padding)
        .set(106, kTypeInt64, spatial)
        .finalize();

    // A transposed convolution is the gradient of a convolution with respect to its input: what is
    // x to us is the gradient that comes in (dy) and y the one that goes out (dx). The attributes
    // of the two operations stand in the same order but for those.
    Owned operation(c.transposed ? kBackwardData : kForward);
    const int first = c.transposed ? 706 : 700;
    operation.set(first + 2, parts[3])
        .set(first + 3, parts[1])
        .set(first + (c.transposed ? 5 : 4), parts[0])
        .set(first + (c.transposed ? 4 : 5), parts[2]);
    if (c.dtype == DType::F64) {
      operation.set(first, kTypeDouble, 1.0).set(first + 1, kTypeDouble, 0.0);
    } else {
      operation.set(first, kTypeFloat, 1.0f).set(first + 1, kTypeFloat, 0.0f);
    }
    operation.finalize();
    parts.push_back(std::move(operation));
    return parts;
  }

  Owned graph_of(const Owned& operation) const {
    Owned graph(kOperationGraph);
    graph.set(801, operation).set(800, kTypeHandle, handle_).finalize();
    return graph;
  }

  std::unique_ptr<ConvolutionPlan> first_plan(const Owned& graph, int mode, DType dtype,
                                              std::vector<Owned>& parts) const {
    Owned heuristics(kEngineHeuristics);
    heuristics.set(201, graph).set(200, kTypeHeuristicsMode, mode);
    std::int64_t count = 0;
    if (!heuristics.finalize() ||
        raw.get_attribute(heuristics.get(), 202, kTypeDescriptor, 0, &count, nullptr) != kSuccess) {
      return nullptr;
    }
    std::vector<Owned> configs;
    std::vector<Descriptor> descriptors;
    for (std::int64_t i = 0; i < count; ++i) {
      descriptors.push_back(configs.emplace_back(kEngineConfig).get());
    }
    if (raw.get_attribute(heuristics.get(), 202, kTypeDescriptor, count, &count,
                          descriptors.data()) != kSuccess) {
      return nullptr;
    }
    for (std::size_t i = 0; i < std::min(configs.size(), static_cast<std::size_t>(count)); ++i) {
      if (!keeps_our_rules(configs[i], dtype)) continue;
      Owned plan(kExecutionPlan);
      std::int64_t workspace = 0;
      std::int64_t one = 0;
      plan.set(400, kTypeHandle, handle_).set(401, configs[i]);
      if (!plan.finalize() ||
          raw.get_attribute(plan.get(), 402, kTypeInt64, 1, &one, &workspace) != kSuccess ||
          workspace < 0 || static_cast<std::size_t>(workspace) > kMostWorkspace) {
        continue;
      }
      parts.push_back(std::move(configs[i]));
      return std::make_unique<Plan>(handle_, std::move(parts), std::move(plan),
                                    static_cast<std::size_t>(workspace));
    }
    return nullptr;
  }

  Handle handle_;
};

std::unique_ptr<DnnSession> open_session() {
  Handle handle = nullptr;
  if (raw.create(&handle) != kSuccess) return nullptr;
  return std::make_unique<Session>(handle);
}

}  // namespace

Found<DnnTable> open_cudnn() {
  static DnnTable table;
  std::vector<std::string> names;
  for (const char* folder : {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"}) {
    for (const char* file : {"libcudnn.so.9", "libcudnn.so.8"}) {
      names.push_back(join(folder, file));
    }
  }
  const Library library = Library::open("TL_CUDNN", names);
  if (!library) return {nullptr, join("no cuDNN: ", library.reason())};
  Symbols symbols(library);
  symbols.need(raw.version, "cudnnGetVersion")
      .need(raw.create, "cudnnCreate")
      .need(raw.destroy, "cudnnDestroy")
      .need(raw.set_stream, "cudnnSetStream")
      .need(raw.create_descriptor, "cudnnBackendCreateDescriptor")
      .need(raw.destroy_descriptor, "cudnnBackendDestroyDescriptor")
      .need(raw.finalize, "cudnnBackendFinalize")
      .need(raw.set_attribute, "cudnnBackendSetAttribute")
      .need(raw.get_attribute, "cudnnBackendGetAttribute")
      .need(raw.execute, "cudnnBackendExecute");
  if (!symbols.missing().empty()) {
    return {nullptr, join("no cuDNN: ", library.file(), " has no ", symbols.missing())};
  }
  const std::size_t version = raw.version();  // 91900 is 9.19.0; 8 had three digits for the rest
  const std::size_t major = version >= 90000 ? 10000 : 1000;
  table.library = library.file();
  table.version = join(version / major, ".", version % major / 100, ".", version % 100);
  table.open = open_session;
  return {&table, {}};
}

}  // namespace tl::driver
