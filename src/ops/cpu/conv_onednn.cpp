// Convolutions by oneDNN. It is asked for the layouts it likes best, and tensors are brought into
// them and back; the primitives for that are kept by convolution, as making them takes longer than
// a small convolution does.
#include <list>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ops/cpu/conv.h"
#include "tl/base/text.h"
#include "tl/base/thread_pool.h"
#include "tl/ops/copy.h"

// Two functions of OpenMP, declared here because its header is the compiler's, and not every tool
// that reads this file has one.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int threads);

namespace tl::cpu {

namespace {

using dnnl::memory;

// As many OpenMP threads as our pool has, while it lives.
class SameThreads {
 public:
  explicit SameThreads(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~SameThreads() { omp_set_num_threads(before_); }
  SameThreads(const SameThreads&) = delete;
  SameThreads& operator=(const SameThreads&) = delete;

 private:
  int before_;
};

// oneDNN 2 dies of an illegal instruction where it uses AMX (seen with 2.6.3 on a Xeon, permission
// asked for or not), so there it may go no further than AVX-512 with bf16. What the user chose
// stands.
void keep_off_tiles() {
  constexpr int kFirstThatMay = 3;
  const bool chosen =
      !environment("ONEDNN_MAX_CPU_ISA").empty() || !environment("DNNL_MAX_CPU_ISA").empty();
  if (dnnl::version()->major >= kFirstThatMay || chosen) return;
  // Refused when someone else in this process has used oneDNN before, who then chose for us.
  static_cast<void>(dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16));
}

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine = [] {
    keep_off_tiles();
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

memory::desc packed(const memory::dims& sizes, memory::data_type type) {
  memory::dims strides(sizes.size(), 1);
  for (std::size_t d = sizes.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * sizes[d];
  return {sizes, type, strides};
}

// A convolution as oneDNN is told of it: sizes, and our tensors as they lie.
struct Description {
  memory::desc x;
  memory::desc kernel;
  memory::desc bias;  // empty without one
  memory::desc y;
  memory::dims stride;
  memory::dims dilation;  // 0 is dense
  memory::dims before;    // padding
  memory::dims after;
};

Description describe(const Convolution& c, bool with_bias, memory::data_type type) {
  Description d;
  memory::dims x{c.batch, c.groups * c.in_channels};
  memory::dims y{c.batch, c.groups * c.out_channels};
  memory::dims kernel;
  if (c.groups > 1) kernel.push_back(c.groups);
  const std::size_t channels = kernel.size();  // where the two channels of the kernel stand
  kernel.push_back(c.transposed ? c.in_channels : c.out_channels);
  kernel.push_back(c.transposed ? c.out_channels : c.in_channels);
  const bool flat = c.axes[0] == ConvolutionAxis{};
  for (std::size_t i = flat ? 1 : 0; i < c.axes.size(); ++i) {
    const ConvolutionAxis& axis = c.axes[i];
    x.push_back(axis.in);
    y.push_back(axis.out);
    kernel.push_back(axis.kernel);
    d.stride.push_back(axis.stride);
    d.dilation.push_back(axis.dilation - 1);
    d.before.push_back(axis.padding);
    // What the library adds behind follows from the sizes.
    const std::int64_t reach = axis.dilation * (axis.kernel - 1) + 1;
    d.after.push_back(c.transposed ? axis.padding - axis.output_padding
                                   : (axis.out - 1) * axis.stride + reach - axis.in - axis.padding);
  }
  d.x = packed(x, type);
  d.y = packed(y, type);
  d.kernel = packed(kernel, type);
  if (c.transposed) {  // the library names the output channel first, wherever it lies
    std::vector<int> order(kernel.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::swap(order[channels], order[channels + 1]);
    d.kernel = d.kernel.permute_axes(order);
  }
  if (with_bias) d.bias = packed({c.groups * c.out_channels}, type);
  return d;
}

memory::desc any(const memory::desc& d) {
  return {d.dims(), d.data_type(), memory::format_tag::any};
}

// The primitive descriptor of a convolution or a transposed one; throws dnnl::error.
template <class Operation, class Arguments>
typename Operation::primitive_desc primitive_for(dnnl::algorithm algorithm, const Arguments& d) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  // Asked for inference it chooses layouts with the channels last, which are slower to bring our
  // tensors into and back than those in blocks of channels.
  constexpr auto kForward = dnnl::prop_kind::forward_training;
  const auto operation =
      d.bias.dims().empty()
          ? typename Operation::desc(kForward, algorithm, any(d.x), any(d.kernel), any(d.y),
                                     d.stride, d.dilation, d.before, d.after)
          : typename Operation::desc(kForward, algorithm, any(d.x), any(d.kernel), d.bias, any(d.y),
                                     d.stride, d.dilation, d.before, d.after);
  return {operation, attributes, cpu_engine()};
}

struct Conversion {
  memory::desc from;
  memory::desc to;
  dnnl::primitive primitive;  // empty when nothing is to be done

  Conversion(const memory::desc& have, const memory::desc& want) : from(have), to(want) {
    if (have != want) {
      primitive =
          dnnl::reorder(dnnl::reorder::primitive_desc(cpu_engine(), have, cpu_engine(), want));
    }
  }
  bool needed() const { return static_cast<bool>(primitive); }
};

// Everything that is made once.
class Plan {
 public:
  template <class PrimitiveDesc, class Operation>
  static std::shared_ptr<const Plan> make(const Description& d, const PrimitiveDesc& chosen,
                                          std::type_identity<Operation>) {
    // The reference implementation is slower than our own loops.
    if (std::string_view(chosen.impl_info_str()).starts_with("ref")) return nullptr;
    return std::shared_ptr<const Plan>(new Plan(d, Operation(chosen), chosen));
  }

  void run(const Tensor& x, const Tensor& kernel, const std::optional<Tensor>& bias,
           Tensor& out) const {
    const Stream here = out.device().stream();
    dnnl::stream stream(cpu_engine());
    // Addresses are taken as writable, though inputs are only read.
    const auto at = [&](const Tensor& t) { return const_cast<std::byte*>(t.read(here)); };
    std::list<RawMemory> scratch;
    const auto room = [&](const memory::desc& d) {
      if (d.get_size() == 0) return memory(d, cpu_engine(), nullptr);
      RawMemory& bytes = scratch.emplace_back(out.device(), d.get_size());
      return memory(d, cpu_engine(), bytes.overwrite_data(here));
    };
    const auto brought = [&](const Conversion& conversion, std::byte* data) {
      memory from(conversion.from, cpu_engine(), data);
      if (!conversion.needed()) return from;
      memory to = room(conversion.to);
      conversion.primitive.execute(stream, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
      return to;
    };

    const memory y(y_.to, cpu_engine(), out.write(here));
    const memory result = y_.needed() ? room(y_.from) : y;
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, brought(x_, at(x))},
                                              {DNNL_ARG_WEIGHTS, brought(kernel_, at(kernel))},
                                              {DNNL_ARG_DST, result},
                                              {DNNL_ARG_SCRATCHPAD, room(scratchpad_)}};
    if (bias) arguments.emplace(DNNL_ARG_BIAS, memory(bias_, cpu_engine(), at(*bias)));
    operation_.execute(stream, arguments);
    if (y_.needed()) {
      y_.primitive.execute(stream, {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, y}});
    }
    stream.wait();
  }

 private:
  template <class PrimitiveDesc>
  Plan(const Description& d, dnnl::primitive operation, const PrimitiveDesc& chosen)
      : operation_(std::move(operation)),
        x_(d.x, chosen.src_desc()),
        kernel_(d.kernel, chosen.weights_desc()),
        y_(chosen.dst_desc(), d.y),
        bias_(d.bias),
        scratchpad_(chosen.scratchpad_desc()) {}

  dnnl::primitive operation_;
  Conversion x_;
  Conversion kernel_;
  Conversion y_;
  memory::desc bias_;
  memory::desc scratchpad_;
};

std::shared_ptr<const Plan> make_plan(const Convolution& c, bool with_bias) {
  const auto type = c.dtype == DType::BF16 ? memory::data_type::bf16 : memory::data_type::f32;
  try {
    const Description d = describe(c, with_bias, type);
    if (c.transposed) {
      using Operation = dnnl::deconvolution_forward;
      return Plan::make(d, primitive_for<Operation>(dnnl::algorithm::deconvolution_direct, d),
                        std::type_identity<Operation>{});
    }
    using Operation = dnnl::convolution_forward;
    return Plan::make(d, primitive_for<Operation>(dnnl::algorithm::convolution_direct, d),
                      std::type_identity<Operation>{});
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

// A plan is made for a number of threads.
struct Key {
  Convolution convolution;
  bool with_bias;
  int threads;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    return driver::ConvolutionHash{}(key.convolution) * 31 +
           static_cast<std::size_t>(key.threads) * 2 + (key.with_bias ? 1 : 0);
  }
};

std::shared_ptr<const Plan> find_plan(const Key& key) {
  constexpr std::size_t kMost = 1024;
  static std::mutex mutex;
  static std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans;
  {
    const std::lock_guard lock(mutex);
    if (const auto known = plans.find(key); known != plans.end()) return known->second;
  }
  auto plan = make_plan(key.convolution, key.with_bias);
  const std::lock_guard lock(mutex);
  if (plans.size() >= kMost) plans.clear();
  return plans.try_emplace(key, std::move(plan)).first->second;
}

bool takes(DType dtype) {
  if (dtype == DType::F32) return true;
  // Where the CPU has no bf16 instructions, the library emulates them, and f32 is as fast. Each
  // instruction set is a set of bits.
  constexpr auto kWanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return dtype == DType::BF16 &&
         (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kWanted) == kWanted;
}

// Threads for a convolution: one for a small one, which would be done before they have met.
int threads_for(const Convolution& c) {
  constexpr std::int64_t kWorth = 1 << 18;  // products
  std::int64_t work = c.batch * c.groups * c.out_channels * c.in_channels;
  for (const ConvolutionAxis& axis : c.axes) {
    work *= axis.kernel * (c.transposed ? axis.in : axis.out);
    if (work > kWorth) return ThreadPool::shared().threads();
  }
  return 1;
}

}  // namespace

bool convolve_by_onednn(const Convolution& c, const Tensor& x, const Tensor& kernel,
                        const std::optional<Tensor>& bias, Tensor& out) {
  if (!takes(c.dtype)) return false;
  const int threads = threads_for(c);
  const SameThreads same(threads);
  const auto plan = find_plan({c, bias.has_value(), threads});
  if (plan == nullptr) return false;
  std::optional<Tensor> plain_bias;
  if (bias) plain_bias = contiguous(*bias);
  try {
    plan->run(x, kernel, plain_bias, out);
  } catch (const dnnl::error&) {
    return false;
  }
  return true;
}

}  // namespace tl::cpu
