// /v1/chat/completions and /v1/completions: text, whole or as it comes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "cli/serve/service.h"

namespace tl::cli::serve {

namespace {

constexpr std::chrono::milliseconds kLook{
    100};  // how soon it is seen that a client who only waits has gone
constexpr std::int64_t kUsualCompletion =
    16;  // tokens of /v1/completions where nothing is said, as OpenAI's

std::string new_id(const char* prefix) {
  static std::atomic<std::uint64_t> count{std::random_device{}()};
  return fmt::format("{}-{:016x}", prefix, count.fetch_add(1) * 0x9e3779b97f4a7c15U);
}

const char* reason_text(FinishReason reason) {
  return reason == FinishReason::Length ? "length" : "stop";
}

Json usage_of(const GenerationStatistics& numbers) {
  return {{"prompt_tokens", numbers.prompt_tokens},
          {"completion_tokens", numbers.generated_tokens},
          {"total_tokens", numbers.prompt_tokens + numbers.generated_tokens},
          {"prompt_tokens_details", {{"cached_tokens", numbers.reused_tokens}}}};
}

// The two shapes that text is given in.
class Shape {
 public:
  Shape(bool is_chat, std::string model, std::int64_t created)
      : is_chat_(is_chat),
        id_(new_id(is_chat ? "chatcmpl" : "cmpl")),
        model_(std::move(model)),
        created_(created) {}

  Json whole(const std::string& text, const Outcome& outcome) const {
    Json choice{{"index", 0}};
    if (is_chat_) {
      choice["message"] = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
    } else {
      choice["text"] = text;
    }
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = reason_text(outcome.reason);
    Json json = head(is_chat_ ? "chat.completion" : "text_completion");
    json["choices"] = Json::array({std::move(choice)});
    json["usage"] = usage_of(outcome.statistics);
    return json;
  }

  // A part of the stream. A chat's first one says who speaks.
  Json first() const { return part({{"role", "assistant"}, {"content", ""}}, "", nullptr); }
  Json text(const std::string& text) const { return part({{"content", text}}, text, nullptr); }
  Json last(FinishReason reason) const { return part(Json::object(), "", reason_text(reason)); }
  Json usage(const Outcome& outcome) const {
    Json json = head(is_chat_ ? "chat.completion.chunk" : "text_completion");
    json["choices"] = Json::array();
    json["usage"] = usage_of(outcome.statistics);
    return json;
  }
  bool is_chat() const { return is_chat_; }

 private:
  Json head(const char* object) const {
    return {{"id", id_}, {"object", object}, {"created", created_}, {"model", model_}};
  }
  Json part(Json delta, const std::string& text, const char* reason) const {
    Json choice{{"index", 0}};
    if (is_chat_) {
      choice["delta"] = std::move(delta);
    } else {
      choice["text"] = text;
    }
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = reason == nullptr ? Json(nullptr) : Json(reason);
    Json json = head(is_chat_ ? "chat.completion.chunk" : "text_completion");
    json["choices"] = Json::array({std::move(choice)});
    return json;
  }

  bool is_chat_;
  std::string id_, model_;
  std::int64_t created_;
};

std::string event(std::string_view data) { return fmt::format("data: {}\n\n", data); }

// Whoever stops waiting, for whatever reason, gives the sequence's place and memory back.
class Waiter {
 public:
  Waiter(Scheduler& scheduler, TicketRef ticket)
      : scheduler_(scheduler), ticket_(std::move(ticket)) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { scheduler_.cancel(*ticket_); }

  // Calls `show` with text as it comes. Nothing when the client has gone or `show` said false.
  std::optional<Outcome> run(const std::function<bool()>& is_gone,
                             const std::function<bool(const std::string&)>& show) {
    auto looked = Ticket::Clock::now();
    while (true) {
      std::optional<Outcome> outcome =
          ticket_->outcome();  // first, so that what wait() gives then is the last text
      const std::string text = ticket_->wait(kLook);
      if (!text.empty() && !show(text)) return {};
      if (outcome) return outcome;
      if (const auto now = Ticket::Clock::now(); now - looked >= kLook) {
        if (is_gone()) return {};
        looked = now;
      }
    }
  }

 private:
  Scheduler& scheduler_;
  TicketRef ticket_;
};

bool is_good(const Outcome& outcome) {
  return outcome.reason != FinishReason::Error && outcome.reason != FinishReason::Cancelled;
}

void write_stream(const Shape& shape, Waiter& waiter, const std::function<bool()>& is_gone,
                  bool with_usage, const HttpWrite& write) {
  const auto send = [&](Json json) {
    if (with_usage && !json.contains("usage")) json["usage"] = nullptr;
    return write(event(to_text(json)));
  };
  if (shape.is_chat() && !send(shape.first())) return;
  const auto outcome =
      waiter.run(is_gone, [&](const std::string& text) { return send(shape.text(text)); });
  if (!outcome) return;
  if (!is_good(*outcome)) {
    const ApiError error = failed(*outcome);
    write(event(error_body(error.status, error.what(), error.param, error.code)));
    return;
  }
  send(shape.last(outcome->reason));
  if (with_usage) send(shape.usage(*outcome));
  write(event("[DONE]"));
}

}  // namespace

ApiError failed(const Outcome& outcome) {
  if (outcome.reason == FinishReason::Cancelled) {
    return outcome.is_late
               ? ApiError(504, "the answer took longer than the server allows", "", "timeout")
               : ApiError(503, "the server is stopping", "", "cancelled");
  }
  switch (outcome.kind) {
    case ErrorKind::OutOfMemory:
      return {503, outcome.message, "", "out_of_memory"};
    case ErrorKind::BadArgument:
    case ErrorKind::InvalidIndex:
      return {400, outcome.message};
    default:
      return {500, outcome.message};
  }
}

ApiError Service::busy() {
  return {503, "too many requests wait already; try again soon", "", "queue_full"};
}

Outcome Service::wait_for(const HttpRequest& request, TicketRef ticket, std::string& text) {
  Waiter waiter(scheduler_, std::move(ticket));
  const auto outcome = waiter.run(request.is_gone, [&](const std::string& part) {
    text += part;
    return true;
  });
  if (!outcome) throw ApiError(499, "the client has gone");
  if (!is_good(*outcome)) throw failed(*outcome);
  return *outcome;
}

HttpReply Service::write(const HttpRequest& request, const Json& body, GenerationRequest what,
                         bool is_chat) {
  const bool streams = get_bool(body, "stream").value_or(false);
  bool with_usage = false;
  if (has(body, "stream_options")) {
    if (!body.at("stream_options").is_object())
      throw ApiError(400, "'stream_options' must be an object", "stream_options");
    with_usage = get_bool(body.at("stream_options"), "include_usage").value_or(false);
  }
  const Shape shape(is_chat, options_.model_id,
                    std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count());
  TicketRef ticket = scheduler_.generate(std::move(what));
  if (!ticket) throw busy();
  HttpReply reply;
  if (!streams) {
    std::string text;
    const Outcome outcome = wait_for(request, std::move(ticket), text);
    reply.body = to_text(shape.whole(text, outcome));
    return reply;
  }
  reply.type = "text/event-stream";
  // The waiter goes with the reply, so that a client who left before the first byte is noticed too.
  reply.stream =
      [shape, with_usage, is_gone = request.is_gone,
       waiter = std::make_shared<Waiter>(scheduler_, std::move(ticket))](const HttpWrite& write) {
        write_stream(shape, *waiter, is_gone, with_usage, write);
      };
  return reply;
}

HttpReply Service::chat(const HttpRequest& request) {
  const Json body = parse_object(request.body);
  check_model(body);
  std::vector<TokenId> prompt = chat_tokens(body);
  check_prompt(prompt, "messages");
  return write(request, body, generation(body, std::move(prompt), -1), true);
}

HttpReply Service::complete(const HttpRequest& request) {
  const Json body = parse_object(request.body);
  check_model(body);
  std::vector<std::vector<TokenId>> prompts = inputs_of(body, "prompt");
  if (prompts.size() != 1)
    throw ApiError(400, "'prompt' must be one text or one list of tokens", "prompt");
  check_prompt(prompts.front(), "prompt");
  return write(request, body, generation(body, std::move(prompts.front()), kUsualCompletion),
               false);
}

}  // namespace tl::cli::serve
