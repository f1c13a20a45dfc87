#include "tl/model/engine.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <ostream>
#include <span>
#include <unordered_set>
#include <utility>

#include "model/stop_strings.h"
#include "tl/base/error.h"
#include "tl/ops/copy.h"
#include "tl/ops/join.h"
#include "tl/runtime/host_buffer.h"
#include "tl/runtime/memory.h"
#include "tl/runtime/pending.h"

namespace tl {

namespace {

constexpr const char* kWhere = "generate";
using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double speed(std::int64_t count, double time) {
  return count > 0 && time > 0 ? static_cast<double>(count) / time : 0;
}

// u32 (n) on the device; nobody waits for the copy.
Tensor upload(std::span<const TokenId> tokens, const Device& device) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (device.is_cpu()) {
    return Tensor::from(std::vector<std::uint32_t>(tokens.begin(), tokens.end()), {count}, device);
  }
  HostBuffer<std::uint32_t> buffer(device, tokens.size());
  std::copy(tokens.begin(), tokens.end(), buffer.data());
  Tensor out = Tensor::uninitialized({count}, DType::U32, device);
  Transfer::upload(out.memory(), buffer.raw(), device.stream()).park();
  return out;
}

// The sampled tokens of a step on their way to the host.
class TokenRead {
 public:
  TokenRead(const Tensor& tokens, const Device& device) : tokens_(contiguous(tokens)) {
    if (device.is_cpu()) return;
    HostBuffer<std::uint32_t> buffer(device, static_cast<std::uint64_t>(tokens_.count()));
    const auto offset = static_cast<std::uint64_t>(tokens_.layout().offset()) * sizeof(TokenId);
    const RawMemory memory = tokens_.memory().slice(offset, tokens_.size_bytes());
    Transfer transfer = Transfer::download(memory, buffer.raw(), device.stream());
    read_.emplace(std::move(transfer), std::move(buffer));
  }

  std::vector<std::uint32_t> wait() {
    if (!read_) return tokens_.to_vector<std::uint32_t>();
    const HostBuffer<std::uint32_t> buffer = read_->wait();
    return {buffer.span().begin(), buffer.span().end()};
  }

 private:
  Tensor tokens_;
  std::optional<PendingRead<std::uint32_t>> read_;  // none on the CPU, where nothing is pending
};

struct Sequence {
  Sequence(RequestId number, GenerationRequest&& asked, const Tokenizer& tokenizer)
      : id(number), request(std::move(asked)), text(tokenizer), stops(request.stop) {}

  // Tokens that are known and not in the cache, and more than the one that was sampled last: they
  // have to be read before the next can be sampled.
  bool is_reading() const { return cache.length() < prefill; }
  std::int64_t known() const { return static_cast<std::int64_t>(tokens.size()); }
  std::int64_t in_flight() const { return launched - result.statistics.generated_tokens; }

  RequestId id;
  GenerationRequest request;
  std::vector<TokenId> tokens;  // all that the host knows: prompt and answer
  std::int64_t prefill = 0;     // the first of them that come from the host
  std::int64_t launched = 0;    // tokens of the answer that were sampled, read or not
  KvCache cache;
  std::optional<Sampler> sampler;
  Tensor last;  // u32 (1): the token that was sampled last, on the device
  TextStream text;
  StopStrings stops;
  GenerationResult result;
  bool is_done = false;
  Clock::time_point submitted = Clock::now(), started, first, latest;
};
using SequenceRef = std::shared_ptr<Sequence>;

// What one sequence adds to a step.
struct Part {
  SequenceRef sequence;
  std::int64_t before = 0;  // length of the cache
  std::int64_t count = 0;   // tokens
  bool samples = false;     // its last token is known or sampled, so the next one can be
};

struct Launched {
  std::vector<SequenceRef> rows;  // a token for each
  TokenRead read;
};

}  // namespace

std::string_view name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::StopToken:
      return "stop";
    case FinishReason::StopString:
      return "stop string";
    case FinishReason::Length:
      return "length";
    case FinishReason::Cancelled:
      return "cancelled";
    case FinishReason::Error:
      return "error";
  }
  return "error";
}

std::ostream& operator<<(std::ostream& out, FinishReason reason) { return out << name(reason); }

std::uint64_t size_bytes(std::span<const KvCache* const> caches) {
  std::unordered_set<const void*> seen;
  std::uint64_t bytes = 0;
  for (const KvCache* cache : caches) {
    for (const RawMemory& block : cache->blocks()) {
      if (seen.insert(block.data()).second) bytes += block.bytes();
    }
  }
  return bytes;
}

double GenerationStatistics::prompt_speed() const noexcept {
  return speed(prompt_tokens - reused_tokens, prompt_seconds);
}
double GenerationStatistics::answer_speed() const noexcept {
  return speed(generated_tokens - 1, answer_seconds);
}

struct Engine::State {
  State(Decoder model, Tokenizer vocabulary, const EngineOptions& how)
      : decoder(std::move(model)), tokenizer(std::move(vocabulary)), device(decoder.device()) {
    if (how.sequences < 1 || how.step_tokens < 0) {
      throw Error(ErrorKind::BadArgument, kWhere, "there must be room for one sequence and one ",
                  "token in a step, not ", how.sequences, " and ", how.step_tokens);
    }
    if (const auto size = static_cast<std::int64_t>(tokenizer.size());
        size > decoder.config().vocabulary) {
      throw Error(ErrorKind::BadFile, kWhere, "the vocabulary has ", size,
                  " tokens, but the model has numbers for ", decoder.config().vocabulary);
    }
    sequences = static_cast<std::size_t>(how.sequences);
    step_tokens = how.step_tokens > 0 ? how.step_tokens : decoder.options().chunk;
  }

  // ---- the life of a sequence
  void admit();
  void start(Sequence& sequence);
  void finish(Sequence& sequence, FinishReason reason);
  void fail(Sequence& sequence, std::exception_ptr error);
  void receive(Sequence& sequence, std::uint32_t token);
  bool show(Sequence& sequence, const std::string& text);
  void shift(Sequence& sequence);
  void apply_cancels();

  // ---- steps
  std::vector<Part> plan();
  void launch(std::vector<Part> parts);
  void tell_prompt(const Part& part);  // how far it is read
  void launch_together(std::span<const Part> parts);
  Tensor tokens_of(std::span<const Part> parts) const;
  void collect();
  void note_cache();
  std::uint64_t cache_bytes() const;

  Decoder decoder;
  Tokenizer tokenizer;
  Device device;
  std::size_t sequences = 0;
  std::int64_t step_tokens = 0;

  mutable std::mutex mutex;  // guards what submit() and cancel() touch
  RequestId next_id = 1;
  std::deque<SequenceRef> queue;
  std::vector<RequestId> cancelled;
  bool all_cancelled = false;

  std::vector<SequenceRef> active;  // in the order they came
  std::deque<Launched> launched;    // whose tokens were not read
  std::vector<GenerationResult> results;
  std::uint64_t peak_cache_bytes = 0;
  std::size_t seen_blocks = 0;  // of all active caches when their bytes were last added up
};

void Engine::State::apply_cancels() {
  std::vector<SequenceRef> ended;  // told outside the lock
  {
    const std::lock_guard lock(mutex);
    const auto is_meant = [&](const SequenceRef& sequence) {
      return all_cancelled ||
             std::find(cancelled.begin(), cancelled.end(), sequence->id) != cancelled.end();
    };
    std::copy_if(active.begin(), active.end(), std::back_inserter(ended), is_meant);
    std::copy_if(queue.begin(), queue.end(), std::back_inserter(ended), is_meant);
    std::erase_if(queue, is_meant);
    cancelled.clear();
    all_cancelled = false;
  }
  for (const SequenceRef& sequence : ended) finish(*sequence, FinishReason::Cancelled);
}

void Engine::State::admit() {
  while (active.size() < sequences) {
    SequenceRef next;
    {
      const std::lock_guard lock(mutex);
      if (queue.empty()) return;
      next = std::move(queue.front());
      queue.pop_front();
    }
    try {
      start(*next);
      if (!next->is_done) active.push_back(next);
    } catch (...) {
      fail(*next, std::current_exception());
    }
  }
}

void Engine::State::start(Sequence& sequence) {
  GenerationRequest& request = sequence.request;
  const auto vocabulary = decoder.config().vocabulary;
  if (request.prompt.empty()) {
    throw Error(ErrorKind::BadArgument, kWhere, "the prompt is empty");
  }
  for (const TokenId token : request.prompt) {
    if (token < 0 || token >= vocabulary) {
      throw Error(ErrorKind::InvalidIndex, kWhere, "there is no token ", token, "; the model has ",
                  vocabulary);
    }
  }
  if (request.max_tokens < -1) {
    throw Error(ErrorKind::BadArgument, kWhere, "an answer cannot have ", request.max_tokens,
                " tokens");
  }
  if (request.keep < 0) {
    throw Error(ErrorKind::BadArgument, kWhere, "a shift cannot keep ", request.keep, " tokens");
  }
  if (std::any_of(request.stop.begin(), request.stop.end(),
                  [](const std::string& stop) { return stop.empty(); })) {
    throw Error(ErrorKind::BadArgument, kWhere, "a stop string is empty");
  }
  sequence.tokens = std::move(request.prompt);
  sequence.prefill = sequence.known();
  if (request.cache.context() > 0) {
    sequence.cache = std::move(request.cache);
  } else {
    sequence.cache = decoder.new_cache();
  }
  if (sequence.known() > sequence.cache.context()) {
    throw Error(ErrorKind::BadArgument, kWhere, "the prompt has ", sequence.known(),
                " tokens, and the context holds ", sequence.cache.context());
  }
  // The last token is computed in any case: the next comes from it.
  sequence.cache.truncate(std::min(sequence.cache.length(), sequence.known() - 1));
  sequence.sampler.emplace(request.sampling, vocabulary, device);
  sequence.sampler->accept(sequence.tokens);
  sequence.started = sequence.first = sequence.latest = Clock::now();
  sequence.result.statistics.prompt_tokens = sequence.known();
  sequence.result.statistics.reused_tokens = sequence.cache.length();
  if (request.max_tokens == 0) finish(sequence, FinishReason::Length);
}

void Engine::State::finish(Sequence& sequence, FinishReason reason) {
  if (sequence.is_done) return;
  sequence.is_done = true;
  GenerationResult& result = sequence.result;
  result.id = sequence.id;
  result.reason = reason;
  if (reason == FinishReason::StopToken || reason == FinishReason::Length) {
    // What was held back is part of the answer after all.
    try {
      show(sequence, sequence.stops.push(sequence.text.flush()));
      show(sequence, sequence.stops.flush());
    } catch (...) {
      result.reason = FinishReason::Error;
      result.error = std::current_exception();
    }
  }
  if (result.error) {
    try {
      std::rethrow_exception(result.error);
    } catch (const std::exception& error) {
      result.message = error.what();
    } catch (...) {
      result.message = "something that is no std::exception was thrown";
    }
  }
  GenerationStatistics& numbers = result.statistics;
  numbers.queue_seconds = seconds(sequence.submitted, sequence.started);
  numbers.prompt_seconds = seconds(sequence.started, sequence.first);
  numbers.answer_seconds = seconds(sequence.first, sequence.latest);
  // A step that is under way may have put a token there that is no part of the sequence.
  sequence.cache.truncate(std::min(sequence.cache.length(), sequence.known()));
  if (sequence.request.keep_cache) result.cache = std::move(sequence.cache);
  sequence.cache = KvCache();
  sequence.sampler.reset();
  sequence.last = Tensor();
  result.sequence = std::move(sequence.tokens);
  results.push_back(std::move(result));
  std::erase_if(active, [&](const SequenceRef& each) { return each.get() == &sequence; });
}

void Engine::State::fail(Sequence& sequence, std::exception_ptr error) {
  sequence.result.error = std::move(error);
  finish(sequence, FinishReason::Error);
}

// Whether it may go on.
bool Engine::State::show(Sequence& sequence, const std::string& text) {
  if (text.empty()) return true;
  sequence.result.text += text;
  return !sequence.request.on_text || sequence.request.on_text(text);
}

// A token that was read.
void Engine::State::receive(Sequence& sequence, std::uint32_t token) {
  GenerationStatistics& numbers = sequence.result.statistics;
  sequence.latest = Clock::now();
  if (++numbers.generated_tokens == 1) sequence.first = sequence.latest;
  if (token >= static_cast<std::uint64_t>(decoder.config().vocabulary)) {
    throw Error(ErrorKind::InvalidIndex, kWhere, "token ", token, " was sampled, the model has ",
                decoder.config().vocabulary, "; its numbers cannot be used");
  }
  const auto id = static_cast<TokenId>(token);
  if (!sequence.request.ignore_end_tokens && tokenizer.is_end(id)) {
    return finish(sequence, FinishReason::StopToken);
  }
  sequence.tokens.push_back(id);
  sequence.result.tokens.push_back(id);
  // Models have rows for more tokens than the vocabulary where that fills a block.
  if (token < tokenizer.size()) {
    if (!show(sequence, sequence.stops.push(sequence.text.push(id)))) {
      return finish(sequence, FinishReason::Cancelled);
    }
    if (sequence.stops.found()) return finish(sequence, FinishReason::StopString);
  }
  if (numbers.generated_tokens == sequence.request.max_tokens) {
    return finish(sequence, FinishReason::Length);
  }
}

// The context is full and everything is read: forgets half of what may be forgotten.
void Engine::State::shift(Sequence& sequence) {
  const std::int64_t keep = sequence.request.keep;
  const std::int64_t drop = (sequence.known() - keep) / 2;
  if (sequence.request.context == ContextPolicy::Stop || drop < 1) {
    return finish(sequence, FinishReason::Length);
  }
  const auto from = sequence.tokens.begin() + keep;
  sequence.tokens.erase(from, from + drop);
  // Keys know their position, so those that moved are computed again.
  sequence.cache.truncate(std::min(keep, sequence.known() - 1));
  sequence.prefill = sequence.known();
  ++sequence.result.statistics.shifts;
}

// Every sequence that is being written has a token in each step; the rest of the step is for
// prompts, the oldest first.
std::vector<Part> Engine::State::plan() {
  std::vector<Part> parts;
  std::int64_t left = step_tokens;
  const std::vector<SequenceRef> all = active;  // a shift may end one
  for (const SequenceRef& sequence : all) {
    if (sequence->is_reading()) continue;
    if (sequence->launched == sequence->request.max_tokens) continue;  // the last ones are read
    if (sequence->cache.room() == 0) {
      if (sequence->in_flight() > 0) continue;
      shift(*sequence);
      continue;
    }
    parts.push_back({sequence, sequence->cache.length(), 1, true});
    --left;
  }
  left = std::max<std::int64_t>(left, 1);  // prompts get on, however many sequences there are
  for (const SequenceRef& sequence : active) {
    if (!sequence->is_reading() || left <= 0) continue;
    const std::int64_t missing = sequence->prefill - sequence->cache.length();
    const std::int64_t count = std::min(missing, left);
    parts.push_back({sequence, sequence->cache.length(), count, count == missing});
    left -= count;
  }
  return parts;
}

Tensor Engine::State::tokens_of(std::span<const Part> parts) const {
  std::vector<Tensor> list;
  std::vector<TokenId> host;
  const auto flush = [&] {
    if (!host.empty()) list.push_back(upload(host, device));
    host.clear();
  };
  for (const Part& part : parts) {
    const Sequence& sequence = *part.sequence;
    if (sequence.is_reading()) {
      const auto from = sequence.tokens.begin() + part.before;
      host.insert(host.end(), from, from + part.count);
    } else {
      flush();
      list.push_back(sequence.last);
    }
  }
  flush();
  return list.size() == 1 ? list.front() : cat(list, 0);
}

// All or nothing: what changes in a sequence changes when nothing can fail any more.
void Engine::State::launch_together(std::span<const Part> parts) {
  std::vector<SequencePart> inputs;
  for (const Part& part : parts) {
    inputs.push_back({&part.sequence->cache, part.count, LogitRows::Last});
  }
  const Tensor logits = decoder.forward(inputs, tokens_of(parts));  // (parts, vocabulary)

  std::vector<Sampler*> samplers;
  std::vector<SequenceRef> rows;
  std::vector<Tensor> chosen;  // rows of the logits
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].samples) continue;
    samplers.push_back(&*parts[i].sequence->sampler);
    rows.push_back(parts[i].sequence);
    chosen.push_back(logits.narrow(0, static_cast<std::int64_t>(i), 1));
  }
  if (rows.empty()) return;
  const Tensor wanted = rows.size() == parts.size() ? logits : cat(chosen, 0);
  const Tensor tokens = Sampler::sample(samplers, wanted);  // (rows)
  std::vector<Tensor> last;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    last.push_back(tokens.narrow(0, static_cast<std::int64_t>(i), 1));
  }
  launched.push_back({std::move(rows), TokenRead(tokens, device)});
  const std::vector<SequenceRef>& sequences_of = launched.back().rows;
  for (std::size_t i = 0; i < sequences_of.size(); ++i) {
    sequences_of[i]->last = std::move(last[i]);
    ++sequences_of[i]->launched;
  }
}

void Engine::State::launch(std::vector<Part> parts) {
  // Room in the caches first, one by one: who gets none is the one that fails.
  std::erase_if(parts, [&](const Part& part) {
    try {
      part.sequence->cache.extend(part.count, device.stream());
      return false;
    } catch (...) {
      fail(*part.sequence, std::current_exception());
      return true;
    }
  });
  note_cache();
  if (parts.empty()) return;
  try {
    launch_together(parts);
  } catch (...) {
    for (const Part& part : parts) part.sequence->cache.truncate(part.before);
    if (parts.size() == 1) return fail(*parts.front().sequence, std::current_exception());
    // One of them may be to blame, or there is not enough memory for all at once.
    for (const Part& part : parts) launch({part});
    return;
  }
  for (const Part& part : parts) tell_prompt(part);
}

void Engine::State::tell_prompt(const Part& part) {
  Sequence& sequence = *part.sequence;
  const bool was_reading = part.before < sequence.prefill;
  if (!sequence.request.on_prompt || !was_reading || sequence.is_done) return;
  try {
    sequence.request.on_prompt(sequence.cache.length(), sequence.prefill);
  } catch (...) {
    fail(sequence, std::current_exception());
  }
}

// Reads the tokens of the oldest step.
void Engine::State::collect() {
  Launched step = std::move(launched.front());
  launched.pop_front();
  std::vector<std::uint32_t> tokens;
  try {
    tokens = step.read.wait();
  } catch (...) {
    for (const SequenceRef& sequence : step.rows) fail(*sequence, std::current_exception());
    return;
  }
  for (std::size_t i = 0; i < step.rows.size(); ++i) {
    Sequence& sequence = *step.rows[i];
    if (sequence.is_done) continue;
    try {
      receive(sequence, tokens[i]);
    } catch (...) {
      fail(sequence, std::current_exception());
    }
  }
}

std::uint64_t Engine::State::cache_bytes() const {
  std::vector<const KvCache*> caches;
  for (const SequenceRef& sequence : active) caches.push_back(&sequence->cache);
  return size_bytes(caches);
}

void Engine::State::note_cache() {
  std::size_t blocks = 0;
  for (const SequenceRef& sequence : active) blocks += sequence->cache.blocks().size();
  if (blocks == std::exchange(seen_blocks, blocks)) return;  // a block lasts for many steps
  peak_cache_bytes = std::max(peak_cache_bytes, cache_bytes());
}

Engine::Engine(Decoder decoder, Tokenizer tokenizer, const EngineOptions& options)
    : state_(std::make_unique<State>(std::move(decoder), std::move(tokenizer), options)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

const Decoder& Engine::decoder() const noexcept { return state_->decoder; }
const Tokenizer& Engine::tokenizer() const noexcept { return state_->tokenizer; }

RequestId Engine::submit(GenerationRequest request) {
  const std::lock_guard lock(state_->mutex);
  const RequestId id = state_->next_id++;
  state_->queue.push_back(std::make_shared<Sequence>(id, std::move(request), state_->tokenizer));
  return id;
}

void Engine::cancel(RequestId id) {
  const std::lock_guard lock(state_->mutex);
  state_->cancelled.push_back(id);
}

void Engine::cancel_all() {
  const std::lock_guard lock(state_->mutex);
  state_->all_cancelled = true;
}

bool Engine::step() {
  State& state = *state_;
  state.apply_cancels();
  state.admit();
  std::vector<Part> parts = state.plan();
  const bool is_new = !parts.empty();
  if (is_new) state.launch(std::move(parts));
  // On a GPU the newest step runs while the one before it is read. On the CPU it is over already,
  // and reading it at once shows its text a step sooner.
  const std::size_t ahead = state.device.is_gpu() && is_new ? 1 : 0;
  while (state.launched.size() > ahead) state.collect();
  if (state.active.empty()) state.launched.clear();  // a step too many
  return !state.active.empty() || queued() > 0;
}

std::vector<GenerationResult> Engine::take_results() { return std::exchange(state_->results, {}); }

std::vector<GenerationResult> Engine::run() {
  while (step()) {
  }
  std::vector<GenerationResult> out = take_results();
  std::sort(out.begin(), out.end(),
            [](const GenerationResult& a, const GenerationResult& b) { return a.id < b.id; });
  return out;
}

GenerationResult Engine::generate(GenerationRequest request) {
  const RequestId id = submit(std::move(request));
  std::vector<GenerationResult>& results = state_->results;
  for (bool more = true; more;) {
    more = step();
    const auto mine = std::find_if(results.begin(), results.end(),
                                   [&](const GenerationResult& each) { return each.id == id; });
    if (mine == results.end()) continue;
    GenerationResult out = std::move(*mine);
    results.erase(mine);
    return out;
  }
  return {};  // not reached: a request that was submitted has a result
}

KvCache Engine::fork_prefix(std::span<const TokenId> tokens) const {
  const Sequence* best = nullptr;
  std::int64_t most = 0;
  for (const SequenceRef& each : state_->active) {
    const std::vector<TokenId>& known = each->tokens;
    const auto end = std::mismatch(known.begin(), known.end(), tokens.begin(), tokens.end()).first;
    const std::int64_t same = std::min<std::int64_t>(end - known.begin(), each->cache.length());
    if (same <= most) continue;
    best = each.get();
    most = same;
  }
  if (best == nullptr) return {};
  KvCache fork = best->cache.fork();
  fork.truncate(most);
  return fork;
}

std::size_t Engine::active() const noexcept { return state_->active.size(); }
std::size_t Engine::queued() const {
  const std::lock_guard lock(state_->mutex);
  return state_->queue.size();
}
std::uint64_t Engine::cache_bytes() const { return state_->cache_bytes(); }
std::uint64_t Engine::peak_cache_bytes() const noexcept { return state_->peak_cache_bytes; }

}  // namespace tl
