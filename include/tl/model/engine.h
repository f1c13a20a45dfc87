// Text from a model: several requests at once, each with its own prompt, sampling and end.
//
//   Engine engine(decoder, tokenizer);
//   GenerationRequest request;
//   request.prompt = tokenizer.encode("Once upon a time");
//   request.on_text = [](std::string_view text) { std::cout << text; return true; };
//   const GenerationResult result = engine.generate(std::move(request));
//
// Each step is one forward pass over a token of every sequence that is being written and, as far as
// the step has room, over parts of prompts that are still to be read. A sequence that ends leaves
// at once and gives its blocks of the cache back; one that waits takes its place. What goes wrong
// with one request ends that request and no other.
//
// On a GPU the next step is launched before the host has read the token of the last one: tokens
// stay on the device from the sampler to the next forward pass, and the host reads them one step
// behind. When a token turns out to be the end, the position too many is forgotten.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/model/decoder.h"
#include "tl/model/kv_cache.h"
#include "tl/model/sampler.h"
#include "tl/model/tokenizer.h"

namespace tl {

enum class FinishReason : std::uint8_t {
  StopToken,   // the model ended its text
  StopString,  // one of the request's stop strings came
  Length,      // as many tokens as were asked for, or as the context holds
  Cancelled,   // by cancel(), or by what on_text said
  Error,       // GenerationResult::error says what
};
std::string_view name(FinishReason reason) noexcept;  // "stop", "stop string", "length", ...
std::ostream& operator<<(std::ostream& out, FinishReason reason);

// What happens when the context is full and the answer is not at its end.
enum class ContextPolicy : std::uint8_t {
  Stop,   // it ends there, with FinishReason::Length
  Shift,  // half of what comes after the first `keep` tokens is forgotten, the rest computed again
};

using RequestId = std::uint64_t;

struct GenerationRequest {
  // All tokens of the sequence so far, those in `cache` too; at least one.
  std::vector<TokenId> prompt;
  // Keys and values of the first tokens of the prompt: the cache of an earlier turn, or a fork of
  // another request's. Only what comes after them is computed. Nothing: all of it is.
  KvCache cache;
  SamplingOptions sampling;
  std::int64_t max_tokens = -1;    // of the answer; -1: until it ends or the context is full
  std::vector<std::string> stop;   // texts that end the answer; they are not part of it
  bool ignore_end_tokens = false;  // go on after the tokens that end a text
  ContextPolicy context = ContextPolicy::Stop;
  std::int64_t keep = 0;    // tokens that are never forgotten by a shift
  bool keep_cache = false;  // hand the cache out with the result
  // Called on the thread that steps with text as it comes, valid UTF-8; false ends the request.
  // What it throws ends the request too and is its error.
  std::function<bool(std::string_view text)> on_text;
  // Called there too, after every step that read tokens of the prompt, with how many of them are in
  // the cache; the last call is with all. What it throws ends the request.
  std::function<void(std::int64_t done, std::int64_t total)> on_prompt;
};

struct GenerationStatistics {
  std::int64_t prompt_tokens = 0;
  std::int64_t reused_tokens = 0;     // of them, those that were in the cache
  std::int64_t generated_tokens = 0;  // the end token too, where there was one
  std::int64_t shifts = 0;
  double queue_seconds = 0;   // from submit() to the first step
  double prompt_seconds = 0;  // from there to the first token
  double answer_seconds = 0;  // from there to the last

  double prompt_speed() const noexcept;  // tokens per second; 0 where there is no time to tell
  double answer_speed() const noexcept;  // of the tokens after the first
};

struct GenerationResult {
  RequestId id = 0;
  FinishReason reason = FinishReason::Error;
  std::exception_ptr error;     // with FinishReason::Error
  std::string message;          // of the error
  std::string text;             // all that on_text was given
  std::vector<TokenId> tokens;  // of the answer, without the end token
  // The prompt and the answer as far as the context still holds them. With keep_cache, `cache` has
  // the first cache.length() of them.
  std::vector<TokenId> sequence;
  KvCache cache;
  GenerationStatistics statistics;
};

// Of all blocks of several caches, those they share once.
std::uint64_t size_bytes(std::span<const KvCache* const> caches);

struct EngineOptions {
  std::int64_t sequences = 8;    // that are computed at once; others wait
  std::int64_t step_tokens = 0;  // of all sequences together in a step; 0: the decoder's chunk
};

class Engine {
 public:
  // Throws BadFile for a vocabulary larger than the model's, BadArgument for bad options.
  Engine(Decoder decoder, Tokenizer tokenizer, const EngineOptions& options = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();  // what is not done is dropped

  const Decoder& decoder() const noexcept;
  const Tokenizer& tokenizer() const noexcept;

  // From any thread, also inside on_text. What is wrong with a request becomes its result.
  RequestId submit(GenerationRequest request);
  void cancel(RequestId id);  // takes effect at the next step; nothing happens to who is done
  void cancel_all();

  // From one thread at a time, not inside on_text.
  bool step();                                           // false when nothing is left to do
  std::vector<GenerationResult> take_results();          // of those that ended since the last call
  std::vector<GenerationResult> run();                   // steps until all are done; by id
  GenerationResult generate(GenerationRequest request);  // steps until this one is; never throws
                                                         // what is in GenerationResult::error

  // Keys and values of the longest start of `tokens` that an active sequence has computed, for a
  // request that begins like it: its blocks are shared, nothing is copied. From the thread that
  // steps.
  KvCache fork_prefix(std::span<const TokenId> tokens) const;

  std::size_t active() const noexcept;              // sequences that are being computed
  std::size_t queued() const;                       // that wait
  std::uint64_t cache_bytes() const;                // blocks of active sequences, shared ones once
  std::uint64_t peak_cache_bytes() const noexcept;  // the most that was

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tl
