#include "model/gpu/row_queue.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "ops/gpu/norm.h"
#include "runtime/context.h"
#include "runtime/stream_state.h"
#include "tl/base/error.h"
#include "tl/ops/binary.h"
#include "tl/ops/unary.h"
#include "tl/runtime/host_buffer.h"
#include "tl/runtime/label.h"
#include "tl/runtime/pending.h"

namespace tl::gpu {

namespace {

using kernels::DecodeLinear;
using kernels::DecodeOutput;
using kernels::DecodePhase;
using kernels::DecodeSight;

constexpr std::int64_t kMostHeads = 1024;
// A device that has nothing to do is given the first steps soon, and then more at a time while it
// is busy with those. Five are a layer of most decoders.
constexpr std::size_t kFirstSteps = 5, kMostSteps = 64;
// Steps that wait for others to let go of what is between them, and then do so no longer.
constexpr std::size_t kTooMany = 3 * kMostSteps;
// Phases of a launch, but for the last step's, and launches whose phases are kept on the device.
constexpr std::size_t kMostPhases = 64, kPrograms = 32;

// Where all who hold the tensor look for its elements, which were promised to them; or where they
// are.
float* place(const Tensor& x) {
  return reinterpret_cast<float*>(const_cast<std::byte*>(x.memory().data())) + x.layout().offset();
}

bool is_aligned(const Tensor& x) { return reinterpret_cast<std::uintptr_t>(place(x)) % 16 == 0; }

// The same elements in the same order.
bool is_same(const Tensor& a, const Tensor& b) {
  return a.memory().block().get() == b.memory().block().get() && a.count() == b.count() &&
         a.dtype() == b.dtype() && a.is_contiguous() && b.is_contiguous() && place(a) == place(b);
}

bool is_held_elsewhere(const Tensor& x) { return x.memory().use_count() > 1; }

bool operator==(const DecodeSight& a, const DecodeSight& b) {
  return a.begin == b.begin && a.each == b.each && a.splits == b.splits && a.heads == b.heads &&
         a.teams == b.teams && a.members == b.members && a.by_heads == b.by_heads;
}

void keep_promise(const Tensor& promised, const Tensor& made) {
  promised.memory().keep_promise(made.memory());
}

}  // namespace

std::unique_ptr<RowQueue> RowQueue::make(const Device& device) {
  if (device.is_cpu() || !DecodePlan::is_possible(device)) return nullptr;
  std::unique_ptr<RowQueue> queue(new RowQueue(device));
  return queue->may_defer() ? std::move(queue) : nullptr;
}

RowQueue::RowQueue(const Device& device)
    : DeferredWork(device.stream()), plan_(device, kMostHeads), enough_(kFirstSteps) {}

RowQueue::~RowQueue() {
  try {
    finish();               // results may outlive it
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the device is gone
  }
  end();
}

// ---- putting off

bool RowQueue::is_row(const Tensor& x) const {
  return x.dtype() == DType::F32 && x.rank() > 0 && x.count() > 0 && x.count() == x.dim(-1) &&
         x.is_contiguous() && !has_history(x) && x.location() == device().location() &&
         is_aligned(x);
}

Tensor RowQueue::new_row(const Shape& shape) const {
  return Tensor::uninitialized(shape, DType::F32, device());
}

// The step whose norm `x` is going to be, where it was not written yet.
const RowQueue::Step* RowQueue::promising(const Tensor& x) const {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if ((*step)->norm && is_same((*step)->norm->out, x)) return step->get();
  }
  return nullptr;
}

std::optional<DecodePlan::Product> RowQueue::cut(const Step& step) const {
  std::array<DecodePlan::Matrix, kernels::kDecodeWeights> matrices{};
  std::size_t count = 0;
  for (const Part& part : step.parts) {
    matrices[count++] = {&part.weight, part.bias ? place(*part.bias) : nullptr, nullptr};
  }
  return plan_.cut(DecodeLinear{}, std::span(matrices).first(count));
}

// With one matrix more, where that is still one phase.
bool RowQueue::joined(Step& step, const Part& part) const {
  const std::size_t most = step.active ? 2 : kernels::kDecodeWeights;
  if (step.attention || step.gated || step.added || step.parts.size() >= most) return false;
  step.parts.push_back(part);
  auto product = cut(step);
  if (!product) {
    step.parts.pop_back();
    return false;
  }
  step.product = product;
  return true;
}

// Appends it. Steps before it whose inner results no one holds are launched when they are many.
void RowQueue::begin(std::unique_ptr<Step> step) {
  steps_.push_back(std::move(step));
  set_waiting(true);
  if (steps_.size() <= enough_) return;
  std::size_t settled = 0;
  while (settled + 1 < steps_.size() && steps_[settled]->is_settled()) ++settled;
  if (settled < enough_ && steps_.size() < kTooMany) return;
  submit_first(settled < enough_ ? steps_.size() : settled);
  enough_ = std::min(2 * enough_, kMostSteps);
}

std::optional<Tensor> RowQueue::norm(const Tensor& x, const Tensor& weight, double eps) {
  const bool fits = is_row(x) && is_row(weight) && weight.rank() == 1 &&
                    weight.count() == x.count() && x.count() % 32 == 0 &&
                    x.count() <= kernels::kDecodeWidth;
  if (!fits) return std::nullopt;
  use(x);
  use(weight);
  Tensor out = new_row(x.shape());
  auto step = std::make_unique<Step>();
  step->x = x;
  step->norm = {weight, eps, out};
  const Alone alone(*this);
  begin(std::move(step));
  return out;
}

std::optional<Tensor> RowQueue::linear(const Tensor& x, const QTensor& weight,
                                       const std::optional<Tensor>& bias) {
  const bool fits = is_row(x) && weight.rank() == 2 && weight.columns() == x.count() &&
                    weight.rows() > 0 && weight.location() == x.location() &&
                    (!bias || (is_row(*bias) && bias->count() == weight.rows()));
  if (!fits) return std::nullopt;
  Shape shape = x.shape();
  shape[x.rank() - 1] = weight.rows();
  use(x);
  weight.memory().data(stream());
  if (bias) use(*bias);
  const Part part{weight, bias, new_row(shape)};
  const Alone alone(*this);
  const Step* source = promising(x);
  if (Step* step = last(); step != nullptr && !step->attention) {
    const bool same = source != nullptr ? step == source : !step->norm && is_same(step->x, x);
    if (same && joined(*step, part)) return part.out;
  }
  auto step = std::make_unique<Step>();
  step->x = x;
  if (source != nullptr) {
    step->x = source->x;
    step->norm = {source->norm->weight, source->norm->eps, Tensor()};  // promised there
  }
  if (!joined(*step, part)) return std::nullopt;
  begin(std::move(step));
  return part.out;
}

std::optional<Tensor> RowQueue::activate(UnaryOp op, const Tensor& x) {
  if ((op != UnaryOp::Silu && op != UnaryOp::Gelu) || !is_row(x)) return std::nullopt;
  const Alone alone(*this);
  Step* step = last();
  if (step == nullptr || step->parts.size() > 2 || step->active || step->added) return std::nullopt;
  for (std::size_t i = 0; i < step->parts.size(); ++i) {
    if (!is_same(step->parts[i].out, x)) continue;
    step->active = new_row(x.shape());
    step->active_part = i;
    step->activation = op;
    return step->active;
  }
  return std::nullopt;
}

std::optional<Tensor> RowQueue::multiply(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || !is_row(a) || !is_row(b)) return std::nullopt;
  const Alone alone(*this);
  Step* step = last();
  if (step == nullptr || !step->active || step->gated || step->parts.size() != 2) {
    return std::nullopt;
  }
  const Tensor& other = step->parts[1 - step->active_part].out;
  const bool fits = (is_same(*step->active, a) && is_same(other, b)) ||
                    (is_same(*step->active, b) && is_same(other, a));
  if (fits) step->gated = new_row(a.shape());
  return fits ? step->gated : std::nullopt;
}

std::optional<Tensor> RowQueue::add(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || !is_row(a) || !is_row(b)) return std::nullopt;
  use(a);
  use(b);
  const Alone alone(*this);
  Step* step = last();
  if (step == nullptr || step->parts.size() != 1 || step->parts[0].bias || step->active ||
      step->added) {
    return std::nullopt;
  }
  const Tensor& part = step->parts[0].out;
  if (!is_same(part, a) && !is_same(part, b)) return std::nullopt;
  step->added_to = is_same(part, a) ? b : a;
  step->added = new_row(a.shape());
  return step->added;
}

std::optional<Tensor> RowQueue::attend(const RowAttention& attention) {
  const DecoderConfig& config = *attention.config;
  for (const Tensor* x : {&attention.q, &attention.k, &attention.v}) {
    const bool fits = x->dtype() == DType::F32 && x->is_contiguous() && !has_history(*x) &&
                      x->location() == device().location() && is_aligned(*x);
    if (!fits) return std::nullopt;
  }
  if (!plan_.fits(config)) return std::nullopt;
  for (const Tensor* x : {&attention.q, &attention.k, &attention.v, &attention.cosines,
                          &attention.sines, &attention.blocks}) {
    use(*x);
  }
  const std::int64_t window = config.attention[static_cast<std::size_t>(attention.layer)].window;
  Attention step{.of = attention,
                 .phase = plan_.attention_of(config, attention.shape, attention.layer),
                 .seen = plan_.sight(config, attention.shape, attention.position, window),
                 .partial_floats = plan_.partial_floats(config),
                 .out = new_row({config.heads * config.value_size})};
  step.of.config = nullptr;
  auto next = std::make_unique<Step>();
  next->attention = std::move(step);
  Tensor out = next->attention->out;
  const Alone alone(*this);
  begin(std::move(next));
  return out;
}

// ---- submitting

bool RowQueue::Step::gates_alone() const {
  return gated && !is_held_elsewhere(parts[0].out) && !is_held_elsewhere(parts[1].out) &&
         !is_held_elsewhere(*active);
}

bool RowQueue::Step::adds_alone() const { return added && !is_held_elsewhere(parts[0].out); }

// Whether it is a phase and nothing else, whatever comes after it.
bool RowQueue::Step::is_settled() const {
  if (attention) return true;
  if (norm && is_held_elsewhere(norm->out)) return false;
  return (!active || gates_alone()) && (!added || adds_alone());
}

void RowQueue::submit() {
  submit_first(steps_.size());
  enough_ = kFirstSteps;
}

void RowQueue::submit_first(std::size_t count) {
  const auto end = steps_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<std::unique_ptr<Step>> now(std::make_move_iterator(steps_.begin()),
                                         std::make_move_iterator(end));
  steps_.erase(steps_.begin(), end);
  if (steps_.empty()) set_waiting(false);
  const NoHistory none;
  std::size_t done = 0;  // of them, for certain
  try {
    for (std::size_t i = 0; i < now.size(); ++i) {
      emit(*now[i]);
      if (plan_.phases().size() < kMostPhases) continue;
      launch();
      done = i + 1;
    }
    launch();
  } catch (...) {
    plan_.clear();
    sights_ = {};
    for (; done < now.size(); ++done) give_up(*now[done]);
    throw;
  }
}

// Whoever holds a result of it finds NaNs, and not what happened to lie there.
void RowQueue::give_up(const Step& step) noexcept {
  std::vector<const Tensor*> promised;
  if (step.norm) promised.push_back(&step.norm->out);
  for (const Part& part : step.parts) promised.push_back(&part.out);
  for (const auto* each : {&step.active, &step.gated, &step.added}) {
    if (*each) promised.push_back(&**each);
  }
  if (step.attention) promised.push_back(&step.attention->out);
  Context& context = device().context();
  try {
    const CurrentContext current(context);
    for (const Tensor* x : promised) {
      if (x->count() == 0) continue;
      context.note_failure(
          context.table().fill8(place(*x), 0xff, x->size_bytes(), stream().state()->bare()),
          "rows that were put off");
    }
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the device is gone, results with it
  }
}

void RowQueue::emit(Step& step) {
  if (step.attention) return emit_attention(*step.attention);
  if (step.norm && is_held_elsewhere(step.norm->out)) {
    launch();
    const Norm& norm = *step.norm;
    gpu::norm(step.x, norm.out.layout(), reinterpret_cast<std::byte*>(place(norm.out)),
              {.weight = &norm.weight,
               .epsilon = norm.eps,
               .centered = false,
               .channels = norm.weight.count()});
  }
  if (!step.parts.empty()) emit_product(step);
}

void RowQueue::emit_product(Step& step) {
  DecodePlan::Product product = *step.product;
  DecodeLinear& linear = product.linear;
  linear.x = place(step.x);
  if (step.norm) {
    linear.norm = place(step.norm->weight);
    linear.eps = static_cast<float>(step.norm->eps);
  }
  for (std::size_t i = 0; i < step.parts.size(); ++i) {
    linear.part[i].out = place(step.parts[i].out);
  }
  if (step.gates_alone()) {
    if (step.active_part == 1) std::swap(linear.part[0], linear.part[1]);
    linear.part[0].out = linear.part[1].out = place(*step.gated);
    linear.output = DecodeOutput::Gated;
    linear.is_gelu = step.activation == UnaryOp::Gelu ? 1 : 0;
    plan_.add(product);
    return;
  }
  if (step.adds_alone()) {
    linear.part[0].bias = place(*step.added_to);
    linear.part[0].out = place(*step.added);
    plan_.add(product);
    return;
  }
  plan_.add(product);
  if (!step.active && !step.added) return;
  // Someone holds what is inside, so each of them is computed by itself.
  launch();
  if (step.active) {
    const Tensor& x = step.parts[step.active_part].out;
    keep_promise(*step.active, step.activation == UnaryOp::Gelu ? gelu(x) : silu(x));
  }
  if (step.gated) {
    keep_promise(*step.gated, mul(*step.active, step.parts[1 - step.active_part].out));
  }
  if (step.added) keep_promise(*step.added, tl::add(*step.added_to, step.parts[0].out));
}

void RowQueue::emit_attention(Attention& attention) {
  const RowAttention& of = attention.of;
  const auto* blocks = reinterpret_cast<const kernels::Bits8*>(of.blocks.memory().data());
  DecodePhase& phase = attention.phase;
  const bool is_near = phase.attention.window != 0;
  const auto fits = [&](const Sights& sights) {
    if (sights.position && (*sights.position != of.position || sights.blocks != blocks)) {
      return false;
    }
    if (is_near)
      return !sights.near ||
             (*sights.near == attention.seen && sights.window == phase.attention.window);
    return !sights.far || *sights.far == attention.seen;
  };
  if (!fits(sights_) || partial_.count() < attention.partial_floats) launch();
  if (partial_.count() < attention.partial_floats) {
    partial_ = new_row({attention.partial_floats});
  }
  sights_.position = of.position;
  sights_.blocks = blocks;
  (is_near ? sights_.near : sights_.far) = attention.seen;
  if (is_near) sights_.window = phase.attention.window;
  phase.attention.q = place(of.q);
  phase.attention.k = place(of.k);
  phase.attention.v = place(of.v);
  phase.attention.out = place(attention.out);
  phase.attention.partial = place(partial_);
  phase.attention.arrived = plan_.arrived();
  phase.attention.cosines = place(of.cosines);
  phase.attention.sines = place(of.sines);
  plan_.add(phase);
}

// The phases in the device's memory. Those of one token are often those of the one before, with the
// same addresses.
const Tensor& RowQueue::on_device(const std::vector<DecodePhase>& phases) {
  const auto bytes = std::as_bytes(std::span(phases));
  const auto known = std::find_if(programs_.begin(), programs_.end(), [&](const Program& program) {
    return std::ranges::equal(program.bytes, bytes);
  });
  if (known != programs_.end()) {
    std::rotate(programs_.begin(), known, known + 1);
    return programs_.front().tensor;
  }
  // Memory for all of them is taken once: taken one by one it would move the tensors of the next
  // token, and so its phases.
  const LabelScope label("decode step");
  constexpr std::size_t kRoom = (kMostPhases + 16) * sizeof(DecodePhase);
  const auto new_room = [&](std::size_t size) {
    return Tensor::uninitialized({static_cast<std::int64_t>(size)}, DType::U8, device());
  };
  while (programs_.size() < kPrograms) programs_.push_back({{}, new_room(kRoom)});
  std::rotate(programs_.begin(), programs_.end() - 1, programs_.end());
  Program& program = programs_.front();
  if (program.tensor.size_bytes() < bytes.size()) program.tensor = new_room(bytes.size());
  program.bytes.clear();  // until the new ones are on their way
  RawHostBuffer buffer = RawHostBuffer::pinned(device(), program.tensor.size_bytes());
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  Transfer::upload(program.tensor.memory(), buffer, stream()).park();
  program.bytes.assign(bytes.begin(), bytes.end());
  return program.tensor;
}

void RowQueue::launch() {
  if (plan_.phases().empty()) return;
  plan_.finish();
  kernels::DecodeStep step{};
  step.phases = reinterpret_cast<const DecodePhase*>(on_device(plan_.phases()).memory().data());
  step.blocks = reinterpret_cast<kernels::Bits8* const*>(sights_.blocks);
  step.position = sights_.position.value_or(0);
  if (sights_.far) step.seen = *sights_.far;
  if (sights_.near) step.seen_near = *sights_.near;
  plan_.launch(step);
  plan_.clear();
  sights_ = {};
}

}  // namespace tl::gpu
