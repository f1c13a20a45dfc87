// Work on single rows, as a decoder does it for one token, put off until much of it can go to a GPU
// in one launch of module DECODE.
//
// A launch of its own for every norm, product and sum costs more time than the work itself. Here
// they are collected, as what they are: products of one input become one phase, a norm goes into
// the products that read it, an activation, a gate and a sum into the product they come after.
// Results are tensors like any others. Whoever does something else with one, or with anything on
// the stream, has what was put off queued first (runtime/deferred.h), so no one can tell but by the
// clock, and by the last digits of a product: it is that of the decoder's kernel.
//
//   Tensor h = queue.norm(x, weight, 1e-5);   // nothing is launched
//   Tensor q = queue.linear(h, wq), k = queue.linear(h, wk);
//   q.item();                                 // one launch; h was never written if no one has it
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/gpu/decode_plan.h"
#include "runtime/deferred.h"
#include "tl/kernels/elementwise.h"
#include "tl/model/decoder_config.h"
#include "tl/quant/qtensor.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

// One new token's attention over a cache. Tensors are f32 and contiguous.
struct RowAttention {
  const DecoderConfig* config = nullptr;  // for the call alone
  KvShape shape;
  std::int64_t layer = 0;
  std::int64_t position = 0;
  Tensor q, k, v;         // heads * key_size, kv_heads * key_size and kv_heads * value_size of them
  Tensor cosines, sines;  // (positions, rope_size / 2)
  Tensor blocks;          // the addresses of the cache's blocks, i64
  std::shared_ptr<const void> cache;  // what keeps them
};

class RowQueue final : public DeferredWork {
 public:
  // Nothing where the device has no such kernel, or another one puts off work for its stream.
  static std::unique_ptr<RowQueue> make(const Device& device);
  ~RowQueue();

  const Device& device() const noexcept { return plan_.device(); }

  // Each gives what the op of that name gives, or nothing where it is not for here: more than one
  // row, another dtype, formats without codes, gradients, nothing before it that it belongs to.
  std::optional<Tensor> norm(const Tensor& x, const Tensor& weight, double eps);
  std::optional<Tensor> linear(const Tensor& x, const QTensor& weight,
                               const std::optional<Tensor>& bias = std::nullopt);
  std::optional<Tensor> activate(UnaryOp op, const Tensor& x);  // silu, gelu
  std::optional<Tensor> multiply(const Tensor& a, const Tensor& b);
  std::optional<Tensor> add(const Tensor& a, const Tensor& b);
  std::optional<Tensor> attend(const RowAttention& attention);  // (heads * value_size)

  void finish() const { stream().native(); }                   // nothing waits any more
  std::size_t size() const noexcept { return steps_.size(); }  // that wait

 private:
  struct Norm {
    Tensor weight;
    double eps;
    Tensor out;  // written only where someone holds it
  };
  struct Part {
    QTensor weight;
    std::optional<Tensor> bias;
    Tensor out;
  };
  struct Attention {
    RowAttention of;
    kernels::DecodePhase phase;
    kernels::DecodeSight seen;
    std::int64_t partial_floats;
    Tensor out;
  };
  // A phase, or two where not all of it belongs together in the end. Members hold all memory that
  // it touches.
  struct Step {
    Tensor x;
    std::optional<Norm> norm;  // of x, for all parts
    std::vector<Part> parts;
    std::optional<DecodePlan::Product> product;  // of all parts, without places for results
    std::optional<Tensor> active;                // activation of a part
    std::size_t active_part = 0;
    UnaryOp activation = UnaryOp::Silu;
    std::optional<Tensor> gated;            // active * the other part
    std::optional<Tensor> added_to, added;  // added = added_to + the only part
    std::optional<Attention> attention;

    bool is_settled() const;
    bool gates_alone() const;  // no one has seen what is inside
    bool adds_alone() const;
  };

  // What all attention of a launch has in common.
  struct Sights {
    std::optional<std::int64_t> position;
    const kernels::Bits8* blocks = nullptr;
    std::int64_t window = 0;
    std::optional<kernels::DecodeSight> far, near;
  };

  explicit RowQueue(const Device& device);
  bool is_row(const Tensor& x) const;
  Tensor new_row(const Shape& shape) const;
  void use(const Tensor& x) const { x.read(stream()); }  // after what other streams do to it
  Step* last() { return steps_.empty() ? nullptr : steps_.back().get(); }
  const Step* promising(const Tensor& x) const;
  std::optional<DecodePlan::Product> cut(const Step& step) const;
  bool joined(Step& step, const Part& part) const;
  void begin(std::unique_ptr<Step> step);

  void submit() override;
  void submit_first(std::size_t count);
  void give_up(const Step& step) noexcept;
  void emit(Step& step);
  void emit_product(Step& step);
  void emit_attention(Attention& attention);
  void launch();
  const Tensor& on_device(const std::vector<kernels::DecodePhase>& phases);

  DecodePlan plan_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::size_t enough_;  // steps that are worth a launch
  Sights sights_;       // of the launch that is being put together
  Tensor partial_;      // room for attention's parts
  struct Program {
    std::vector<std::byte> bytes;
    Tensor tensor;
  };
  std::vector<Program> programs_;  // the last ones, newest first
};

}  // namespace tl::gpu
