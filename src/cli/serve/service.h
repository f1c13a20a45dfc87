// What `tl serve` answers: the model, its limits and its numbers, shared by the handlers of all
// endpoints.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/sampling_options.h"
#include "cli/serve/fields.h"
#include "cli/serve/http.h"
#include "cli/serve/scheduler.h"
#include "tl/model/chat_template.h"

namespace tl::cli::serve {

struct ServiceOptions {
  std::string model_id;
  std::string api_key;   // empty: none is asked for
  std::string cors;      // an origin, "*" for all; empty: none
  TextOptions text;      // what a request does not say; max_tokens is the limit of an answer
  bool is_local = true;  // bound to an address of this machine alone
};

class Service {
 public:
  Service(Scheduler& scheduler, std::optional<ChatTemplate> chat_template, ServiceOptions options);

  HttpRoutes routes();
  std::function<std::size_t()> connections;  // how many there are, for the metrics

 private:
  // ---- before and after every request (service.cpp)
  std::optional<HttpReply> admit(const HttpRequest& request) const;
  void finish(const HttpRequest& request, HttpReply& reply);
  bool is_allowed_origin(const HttpRequest& request) const;
  HttpReply guarded(const HttpRequest& request, HttpReply (Service::*handler)(const HttpRequest&));

  HttpReply page(const HttpRequest& request);
  HttpReply health(const HttpRequest& request);
  HttpReply models(const HttpRequest& request);
  HttpReply tokenize(const HttpRequest& request);
  HttpReply detokenize(const HttpRequest& request);
  HttpReply metrics(const HttpRequest& request);  // numbers.cpp
  HttpReply memory(const HttpRequest& request);

  // ---- text: completions.cpp, and what is asked for: settings.cpp, inputs.cpp
  HttpReply chat(const HttpRequest& request);
  HttpReply complete(const HttpRequest& request);
  HttpReply embeddings(const HttpRequest& request);
  HttpReply write(const HttpRequest& request, const Json& body, GenerationRequest what,
                  bool is_chat);
  // Waits for the end. Throws ApiError where that is none to be glad of.
  Outcome wait_for(const HttpRequest& request, TicketRef ticket, std::string& text);
  // `usual`: tokens of the answer where the request does not say; -1 for the limit.
  GenerationRequest generation(const Json& body, std::vector<TokenId> prompt,
                               std::int64_t usual) const;
  std::vector<TokenId> chat_tokens(const Json& body) const;
  std::vector<TokenId> tokens_of(const Json& list, const char* field) const;
  std::vector<std::vector<TokenId>> inputs_of(const Json& body, const char* field) const;
  void check_model(const Json& body) const;
  void check_prompt(const std::vector<TokenId>& prompt, const char* field) const;
  static ApiError busy();

  Scheduler& scheduler_;
  std::optional<ChatTemplate> template_;
  ServiceOptions options_;
  std::int64_t created_;  // seconds since 1970
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::map<std::string, std::string> paths_;  // and the method of each
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> replies_;  // by path and status
};

// What could not be done, with its status: 503 for what may succeed later.
ApiError failed(const Outcome& outcome);

}  // namespace tl::cli::serve
