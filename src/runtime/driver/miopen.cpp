// Convolutions by MIOpen (ROCm 5 and later), opened at run time and used in its immediate mode: the
// library lists the solutions it has for a problem, the one it expects to be fastest first, and no
// trial runs are made. The first solution that compiles becomes the plan.
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

struct Solution {
  float time;
  std::size_t workspace_bytes;
  std::uint64_t id;
  int algorithm;
};

// The forward functions take (w, x, y), the others (dy, w, dx); Immediate has an address after
// each.
using CountSolutions = Status(Handle, Handle a, Handle b, Handle convolution, Handle c,
                              std::size_t* count);
using GetSolutions = Status(Handle, Handle a, Handle b, Handle convolution, Handle c,
                            std::size_t room, std::size_t* count, Solution* solutions);
using CompileSolution = Status(Handle, Handle a, Handle b, Handle convolution, Handle c,
                               std::uint64_t id);
using RunSolution = Status(Handle, Handle a, const void* a_data, Handle b, const void* b_data,
                           Handle convolution, Handle c, void* c_data, void* workspace,
                           std::size_t workspace_bytes, std::uint64_t id);

struct Direction {
  CountSolutions* count;
  GetSolutions* solutions;
  CompileSolution* compile;
  RunSolution* run;
};

struct Raw {
  Status (*version)(std::size_t* major, std::size_t* minor, std::size_t* patch);
  Status (*create)(Handle* handle);
  Status (*destroy)(Handle handle);
  Status (*set_stream)(Handle handle, Handle stream);
  Status (*create_tensor)(Handle* tensor);
  Status (*set_tensor)(Handle tensor, int type, int rank, const int* sizes, const int* strides);
  Status (*destroy_tensor)(Handle tensor);
  Status (*create_convolution)(Handle* convolution);
  Status (*init_convolution)(Handle convolution, int spatial, const int* padding, const int* stride,
                             const int* dilation, int mode);
  Status (*set_groups)(Handle convolution, int groups);
  Status (*destroy_convolution)(Handle convolution);
  Direction forward;
  Direction backward;
};
Raw raw;

constexpr std::size_t kMostWorkspace = std::size_t{4} << 30;

int data_type(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return 0;
    case DType::F32:
      return 1;
    case DType::BF16:
      return 5;
    default:
      return -1;
  }
}

class TensorDescriptor {
 public:
  TensorDescriptor() {
    if (raw.create_tensor(&tensor_) != kSuccess) tensor_ = nullptr;
  }
  ~TensorDescriptor() {
    if (tensor_ != nullptr) raw.destroy_tensor(tensor_);
  }
  TensorDescriptor(const TensorDescriptor&) = delete;
  TensorDescriptor& operator=(const TensorDescriptor&) = delete;

  bool set(int type, const std::vector<int>& shape) {
    std::vector<int> strides(shape.size(), 1);
    for (std::size_t d = shape.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * shape[d];
    return tensor_ != nullptr && raw.set_tensor(tensor_, type, static_cast<int>(shape.size()),
                                                shape.data(), strides.data()) == kSuccess;
  }
  Handle get() const noexcept { return tensor_; }

 private:
  Handle tensor_ = nullptr;
};

class Plan final : public ConvolutionPlan {
 public:
  explicit Plan(Handle handle) : handle_(handle) {
    if (raw.create_convolution(&convolution_) != kSuccess) convolution_ = nullptr;
  }
  ~Plan() override {
    if (convolution_ != nullptr) raw.destroy_convolution(convolution_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  bool make(const Convolution& c, int type) { return describe(c, type) && choose(); }

  std::size_t workspace_bytes() const noexcept override { return chosen_.workspace_bytes; }

  bool run(Handle stream, const void* x, const void* kernel, void* y, void* workspace) override {
    if (raw.set_stream(handle_, stream) != kSuccess) return false;
    const void* first = transposed_ ? x : kernel;
    const void* second = transposed_ ? kernel : x;
    return direction().run(handle_, first_tensor(), first, second_tensor(), second, convolution_,
                           y_.get(), y, workspace, chosen_.workspace_bytes, chosen_.id) == kSuccess;
  }

 private:
  const Direction& direction() const { return transposed_ ? raw.backward : raw.forward; }
  Handle first_tensor() const { return transposed_ ? x_.get() : w_.get(); }
  Handle second_tensor() const { return transposed_ ? w_.get() : x_.get(); }

  bool describe(const Convolution& c, int type) {
    const auto number = [](std::int64_t n) { return static_cast<int>(n); };
    std::vector<int> x{number(c.batch), number(c.groups * c.in_channels)};
    std::vector<int> y{number(c.batch), number(c.groups * c.out_channels)};
    std::vector<int> w{number(c.groups * (c.transposed ? c.in_channels : c.out_channels)),
                       number(c.transposed ? c.out_channels : c.in_channels)};
    std::vector<int> padding;
    std::vector<int> stride;
    std::vector<int> dilation;
    const bool flat = c.axes[0] == ConvolutionAxis{};
    for (std::size_t d = flat ? 1 : 0; d < c.axes.size(); ++d) {
      x.push_back(number(c.axes[d].in));
      y.push_back(number(c.axes[d].out));
      w.push_back(number(c.axes[d].kernel));
      padding.push_back(number(c.axes[d].padding));
      stride.push_back(number(c.axes[d].stride));
      dilation.push_back(number(c.axes[d].dilation));
    }
    transposed_ = c.transposed;  // as the gradient of a convolution with respect to its input
    const int plain = 0;
    return convolution_ != nullptr && x_.set(type, x) && w_.set(type, w) && y_.set(type, y) &&
           raw.init_convolution(convolution_, number(static_cast<std::int64_t>(padding.size())),
                                padding.data(), stride.data(), dilation.data(),
                                plain) == kSuccess &&
           raw.set_groups(convolution_, number(c.groups)) == kSuccess;
  }

  bool choose() {
    const Direction& way = direction();
    std::size_t count = 0;
    if (way.count(handle_, first_tensor(), second_tensor(), convolution_, y_.get(), &count) !=
            kSuccess ||
        count == 0) {
      return false;
    }
    std::vector<Solution> solutions(count);
    if (way.solutions(handle_, first_tensor(), second_tensor(), convolution_, y_.get(), count,
                      &count, solutions.data()) != kSuccess) {
      return false;
    }
    for (std::size_t i = 0; i < std::min(count, solutions.size()); ++i) {
      if (solutions[i].workspace_bytes > kMostWorkspace) continue;
      if (way.compile(handle_, first_tensor(), second_tensor(), convolution_, y_.get(),
                      solutions[i].id) == kSuccess) {
        chosen_ = solutions[i];
        return true;
      }
    }
    return false;
  }

  Handle handle_;
  Handle convolution_ = nullptr;
  TensorDescriptor x_;
  TensorDescriptor w_;
  TensorDescriptor y_;
  bool transposed_ = false;
  Solution chosen_{};
};

class Session final : public DnnSession {
 public:
  explicit Session(Handle handle) : handle_(handle) {}
  ~Session() override { raw.destroy(handle_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::unique_ptr<ConvolutionPlan> plan(const Convolution& c) override {
    const int type = data_type(c.dtype);
    if (type < 0 || c.channels_last) return nullptr;
    auto plan = std::make_unique<Plan>(handle_);
    if (!plan->make(c, type)) return nullptr;
    return plan;
  }

 private:
  Handle handle_;
};

std::unique_ptr<DnnSession> open_session() {
  Handle handle = nullptr;
  if (raw.create(&handle) != kSuccess) return nullptr;
  return std::make_unique<Session>(handle);
}

}  // namespace

Found<DnnTable> open_miopen() {
  static DnnTable table;
  const std::array<std::string, 2> names{"libMIOpen.so.1", "/opt/rocm/lib/libMIOpen.so.1"};
  const Library library = Library::open("TL_MIOPEN", names);
  if (!library) return {nullptr, join("no MIOpen: ", library.reason())};
  Symbols symbols(library);
  symbols.need(raw.version, "miopenGetVersion")
      .need(raw.create, "miopenCreate")
      .need(raw.destroy, "miopenDestroy")
      .need(raw.set_stream, "miopenSetStream")
      .need(raw.create_tensor, "miopenCreateTensorDescriptor")
      .need(raw.set_tensor, "miopenSetTensorDescriptor")
      .need(raw.destroy_tensor, "miopenDestroyTensorDescriptor")
      .need(raw.create_convolution, "miopenCreateConvolutionDescriptor")
      .need(raw.init_convolution, "miopenInitConvolutionNdDescriptor")
      .need(raw.set_groups, "miopenSetConvolutionGroupCount")
      .need(raw.destroy_convolution, "miopenDestroyConvolutionDescriptor")
      .need(raw.forward.count, "miopenConvolutionForwardGetSolutionCount")
      .need(raw.forward.solutions, "miopenConvolutionForwardGetSolution")
      .need(raw.forward.compile, "miopenConvolutionForwardCompileSolution")
      .need(raw.forward.run, "miopenConvolutionForwardImmediate")
      .need(raw.backward.count, "miopenConvolutionBackwardDataGetSolutionCount")
      .need(raw.backward.solutions, "miopenConvolutionBackwardDataGetSolution")
      .need(raw.backward.compile, "miopenConvolutionBackwardDataCompileSolution")
      .need(raw.backward.run, "miopenConvolutionBackwardDataImmediate");
  if (!symbols.missing().empty()) {
    return {nullptr, join("no MIOpen: ", library.file(), " has no ", symbols.missing())};
  }
  std::size_t major = 0;
  std::size_t minor = 0;
  std::size_t patch = 0;
  raw.version(&major, &minor, &patch);
  table.library = library.file();
  table.version = join(major, ".", minor, ".", patch);
  table.open = open_session;
  return {&table, {}};
}

}  // namespace tl::driver
