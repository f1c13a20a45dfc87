#include "cli/serve/scheduler.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <span>
#include <thread>
#include <utility>

#include "cli/serve/prefix_cache.h"

namespace tl::cli::serve {

namespace {

// Below this a shared start is not worth the copy of its last block.
constexpr std::int64_t kLeastShared = 16;

double seconds_since(Ticket::Clock::time_point start) {
  return std::chrono::duration<double>(Ticket::Clock::now() - start).count();
}

Outcome failure(std::exception_ptr error) {
  Outcome out;
  try {
    std::rethrow_exception(std::move(error));
  } catch (const Error& known) {
    out.kind = known.kind;
    out.message = known.what();
  } catch (const std::exception& other) {
    out.message = other.what();
  } catch (...) {
    out.message = "something that is no std::exception was thrown";
  }
  return out;
}

}  // namespace

void Histogram::add(double seconds) {
  const auto at = std::lower_bound(std::begin(kBounds), std::end(kBounds), seconds);
  ++counts[at - std::begin(kBounds)];
  sum += seconds;
}

std::string Ticket::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return !text_.empty() || outcome_; });
  return std::exchange(text_, {});
}

std::optional<Outcome> Ticket::outcome() const {
  const std::lock_guard lock(mutex_);
  return outcome_;
}

struct Scheduler::State {
  struct Waiting {
    TicketRef ticket;
    GenerationRequest request;
  };
  // The mean of a text's hidden states, a chunk between two steps of the others.
  struct Embedding {
    TicketRef ticket;
    std::vector<TokenId> tokens;
    KvCache cache;
    std::vector<double> sum;
  };

  State(Engine made, const SchedulerOptions& how)
      : engine(std::move(made)), options(how), prefixes(how.prefix_bytes) {}

  TicketRef new_ticket() const;
  // Whether one more may come; under the lock. Then it counts.
  bool enter();
  void run();
  bool wait_for_work();  // false when it is time to end
  void drop_cancelled();
  void admit();
  void start(Waiting next);
  void step();
  void embed_some();
  void close(Ticket& ticket, Outcome outcome);
  void take(GenerationResult result);
  void publish();

  Engine engine;
  SchedulerOptions options;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<Waiting> waiting;
  std::deque<Embedding> embeddings;
  std::size_t inside = 0;  // that have no outcome
  bool is_ending = false;
  bool is_all_cancelled = false;
  SchedulerNumbers numbers;

  // The thread's own.
  std::map<RequestId, TicketRef> running;
  PrefixCache prefixes;
  std::thread thread;
};

TicketRef Scheduler::State::new_ticket() const {
  auto ticket = std::make_shared<Ticket>();
  if (options.seconds > 0) {
    ticket->deadline_ = ticket->submitted_ + std::chrono::duration_cast<Ticket::Clock::duration>(
                                                 std::chrono::duration<double>(options.seconds));
  }
  return ticket;
}

bool Scheduler::State::enter() {
  if (is_ending || inside >= options.parallel + options.queue) return false;
  ++inside;
  return true;
}

bool Scheduler::State::wait_for_work() {
  std::unique_lock lock(mutex);
  const auto has_work = [&] {
    return is_ending || !waiting.empty() || !embeddings.empty() || !running.empty();
  };
  changed.wait(lock, has_work);
  return !is_ending || !waiting.empty() || !embeddings.empty() || !running.empty();
}

void Scheduler::State::close(Ticket& ticket, Outcome outcome) {
  {
    const std::lock_guard lock(mutex);
    --inside;
    if (outcome.reason == FinishReason::Error) {
      ++numbers.failed;
    } else if (outcome.reason == FinishReason::Cancelled) {
      ++numbers.cancelled;
    } else {
      ++numbers.finished;
    }
    numbers.prompt_tokens += static_cast<std::uint64_t>(outcome.statistics.prompt_tokens);
    numbers.reused_tokens += static_cast<std::uint64_t>(outcome.statistics.reused_tokens);
    numbers.generated_tokens += static_cast<std::uint64_t>(outcome.statistics.generated_tokens);
    numbers.request_seconds.add(seconds_since(ticket.submitted_));
  }
  const std::lock_guard lock(ticket.mutex_);
  ticket.outcome_ = std::move(outcome);
  ticket.changed_.notify_all();
}

// Cancelled, or too late: those that wait end here, those that run at the engine's next step.
void Scheduler::State::drop_cancelled() {
  const auto now = Ticket::Clock::now();
  bool is_all = false;
  {
    const std::lock_guard lock(mutex);
    is_all = std::exchange(is_all_cancelled, false);
    for (const Waiting& each : waiting)
      each.ticket->is_cancelled_ = each.ticket->is_cancelled_ || is_all;
    for (const Embedding& each : embeddings)
      each.ticket->is_cancelled_ = each.ticket->is_cancelled_ || is_all;
  }
  const auto is_over = [&](const Ticket& ticket) {
    return ticket.is_cancelled_ || ticket.deadline_ < now;
  };
  for (const auto& [id, ticket] : running) {
    if (is_all) ticket->is_cancelled_ = true;
    if (is_over(*ticket)) engine.cancel(id);
  }
  std::vector<TicketRef> over;
  {
    const std::lock_guard lock(mutex);
    for (const Waiting& each : waiting) {
      if (is_over(*each.ticket)) over.push_back(each.ticket);
    }
    for (const Embedding& each : embeddings) {
      if (is_over(*each.ticket)) over.push_back(each.ticket);
    }
    std::erase_if(waiting, [&](const Waiting& each) { return is_over(*each.ticket); });
    std::erase_if(embeddings, [&](const Embedding& each) { return is_over(*each.ticket); });
  }
  for (const TicketRef& ticket : over) {
    Outcome outcome;
    outcome.reason = FinishReason::Cancelled;
    outcome.is_late = !ticket->is_cancelled_;
    close(*ticket, std::move(outcome));
  }
}

void Scheduler::State::admit() {
  while (running.size() < options.parallel) {
    Waiting next;
    {
      const std::lock_guard lock(mutex);
      if (waiting.empty()) return;
      next = std::move(waiting.front());
      waiting.pop_front();
    }
    start(std::move(next));
  }
}

void Scheduler::State::start(Waiting next) {
  GenerationRequest& request = next.request;
  KvCache known = prefixes.find(request.prompt);
  if (KvCache active = engine.fork_prefix(request.prompt); active.length() > known.length())
    known = std::move(active);
  if (known.length() >= kLeastShared) request.cache = std::move(known);
  request.keep_cache = options.prefix_bytes > 0;
  request.on_text = [ticket = next.ticket](std::string_view text) {
    {
      const std::lock_guard lock(ticket->mutex_);
      if (ticket->first_ == Ticket::Clock::time_point()) ticket->first_ = Ticket::Clock::now();
      ticket->text_ += text;
      ticket->changed_.notify_all();
    }
    return !ticket->is_cancelled_;
  };
  running.emplace(engine.submit(std::move(request)), std::move(next.ticket));
}

void Scheduler::State::take(GenerationResult result) {
  const auto at = running.find(result.id);
  if (at == running.end()) return;
  const TicketRef ticket = std::move(at->second);
  running.erase(at);
  Outcome outcome;
  if (result.error) outcome = failure(result.error);
  outcome.reason = result.reason;
  outcome.is_late = result.reason == FinishReason::Cancelled && !ticket->is_cancelled_;
  outcome.statistics = result.statistics;
  if (outcome.reason == FinishReason::Error && outcome.kind == ErrorKind::OutOfMemory) {
    prefixes.clear();  // what is kept for later must not stand in the way of now
  } else if (result.statistics.shifts == 0) {
    prefixes.add(std::move(result.sequence), std::move(result.cache));
  }
  if (ticket->first_ != Ticket::Clock::time_point()) {
    const std::lock_guard lock(mutex);
    numbers.first_text_seconds.add(
        std::chrono::duration<double>(ticket->first_ - ticket->submitted_).count());
  }
  result.cache = KvCache();
  publish();  // before the client knows that it is over
  close(*ticket, std::move(outcome));
}

void Scheduler::State::step() {
  try {
    if (!running.empty()) engine.step();
  } catch (...) {
    // The engine gives errors to the requests they belong to; what comes this way is the device's,
    // so all have it.
    const Outcome outcome = failure(std::current_exception());
    engine.cancel_all();
    try {
      engine.step();  // lets go of what they hold
    } catch (...) {   // NOLINT(bugprone-empty-catch): it is the same failure once more
    }
    for (auto& [id, ticket] : std::exchange(running, {})) close(*ticket, outcome);
  }
  for (GenerationResult& result : engine.take_results()) take(std::move(result));
}

void Scheduler::State::embed_some() {
  Embedding job;
  {
    const std::lock_guard lock(mutex);
    if (embeddings.empty()) return;
    job = std::move(embeddings.front());
    embeddings.pop_front();
  }
  try {
    const Decoder& decoder = engine.decoder();
    if (job.cache.context() == 0) {
      job.cache = decoder.new_cache();
      job.sum.assign(static_cast<std::size_t>(decoder.config().width), 0);
    }
    const auto done = static_cast<std::size_t>(job.cache.length());
    const std::size_t count =
        std::min(job.tokens.size() - done, static_cast<std::size_t>(decoder.options().chunk));
    const std::vector<float> hidden =  // (count, width)
        decoder.hidden(std::span(job.tokens).subspan(done, count), job.cache).to_vector<float>();
    for (std::size_t i = 0; i < hidden.size(); ++i) job.sum[i % job.sum.size()] += hidden[i];
    if (done + count < job.tokens.size()) {
      const std::lock_guard lock(mutex);
      embeddings.push_back(
          std::move(job));  // behind those who came later: long texts do not hold up short ones
      return;
    }
    // The length of the sum does not matter: what is handed out has length one.
    double square = 0;
    for (const double x : job.sum) square += x * x;
    const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
    Outcome outcome;
    outcome.reason = FinishReason::Length;
    outcome.statistics.prompt_tokens = std::ssize(job.tokens);
    for (const double x : job.sum) outcome.embedding.push_back(static_cast<float>(x * scale));
    job.cache = KvCache();
    close(*job.ticket, std::move(outcome));
  } catch (...) {
    close(*job.ticket, failure(std::current_exception()));
  }
}

void Scheduler::State::publish() {
  const std::lock_guard lock(mutex);
  numbers.prefix_bytes = prefixes.bytes();
  numbers.prefix_entries = prefixes.entries();
  numbers.peak_cache_bytes = engine.peak_cache_bytes();
}

void Scheduler::State::run() {
  while (wait_for_work()) {
    drop_cancelled();
    admit();
    embed_some();
    step();
    publish();
  }
  prefixes.clear();
  publish();
}

Scheduler::Scheduler(Engine engine, const SchedulerOptions& options)
    : state_(std::make_unique<State>(std::move(engine), options)) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_ending = true;
  }
  cancel_all();
  state_->thread.join();
}

const Decoder& Scheduler::decoder() const noexcept { return state_->engine.decoder(); }
const Tokenizer& Scheduler::tokenizer() const noexcept { return state_->engine.tokenizer(); }

TicketRef Scheduler::generate(GenerationRequest request) {
  TicketRef ticket = state_->new_ticket();
  const std::lock_guard lock(state_->mutex);
  if (!state_->enter()) return nullptr;
  state_->waiting.push_back({ticket, std::move(request)});
  state_->changed.notify_all();
  return ticket;
}

TicketRef Scheduler::embed(std::vector<TokenId> tokens) {
  TicketRef ticket = state_->new_ticket();
  const std::lock_guard lock(state_->mutex);
  if (!state_->enter()) return nullptr;
  state_->embeddings.push_back({ticket, std::move(tokens), {}, {}});
  state_->changed.notify_all();
  return ticket;
}

void Scheduler::cancel(Ticket& ticket) {
  ticket.is_cancelled_ = true;
  state_->changed.notify_all();
}

void Scheduler::cancel_all() {
  const std::lock_guard lock(state_->mutex);
  state_->is_all_cancelled = true;
  state_->changed.notify_all();
}

SchedulerNumbers Scheduler::numbers() const {
  const std::lock_guard lock(state_->mutex);
  SchedulerNumbers out = state_->numbers;
  out.queued = state_->waiting.size() + state_->embeddings.size();
  out.running = state_->inside - out.queued;  // the thread itself tells it a step late
  return out;
}

}  // namespace tl::cli::serve
