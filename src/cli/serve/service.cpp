#include "cli/serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "cli/serve/page.h"
#include "tl/base/error.h"

namespace tl::cli::serve {

namespace {

// Takes as long for every wrong key.
bool is_same_key(std::string_view given, std::string_view key) {
  unsigned differs = given.size() == key.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    differs |= static_cast<unsigned>(given[i] ^ key[i % key.size()]);
  }
  return differs == 0;
}

bool is_open_path(const std::string& path) { return path == "/" || path == "/health"; }

// "host:8080" without the port; "[::1]:8080" is "[::1]".
std::string_view host_name(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const std::size_t bracket = host.rfind(']');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  return has_port ? host.substr(0, colon) : host;
}

// A page somewhere else may give its own name the address of this machine and so become, to the
// browser, part of this server. Names that no one but this machine can have are safe.
bool is_local_name(std::string_view host) {
  const std::string_view name = host_name(host);
  if (name == "localhost" || name.ends_with(".localhost") || name.starts_with('[')) return true;
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

HttpReply refusal(int status, std::string_view message, std::string_view code = {}) {
  HttpReply reply;
  reply.status = status;
  reply.body = error_body(status, message, {}, code);
  return reply;
}

std::string new_nonce() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

Service::Service(Scheduler& scheduler, std::optional<ChatTemplate> chat_template,
                 ServiceOptions options)
    : scheduler_(scheduler),
      template_(std::move(chat_template)),
      options_(std::move(options)),
      created_(std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count()) {}

HttpRoutes Service::routes() {
  HttpRoutes out;
  const auto add = [&](const char* method, const char* path,
                       HttpReply (Service::*handler)(const HttpRequest&)) {
    out.routes.push_back({method, path, [this, handler](const HttpRequest& request) {
                            return guarded(request, handler);
                          }});
    paths_[path] = method;
  };
  add("GET", "/", &Service::page);
  add("GET", "/health", &Service::health);
  add("GET", "/metrics", &Service::metrics);
  add("GET", "/memory", &Service::memory);
  add("GET", "/v1/models", &Service::models);
  add("POST", "/v1/chat/completions", &Service::chat);
  add("POST", "/v1/completions", &Service::complete);
  add("POST", "/v1/embeddings", &Service::embeddings);
  add("POST", "/tokenize", &Service::tokenize);
  add("POST", "/detokenize", &Service::detokenize);
  out.admit = [this](const HttpRequest& request) { return admit(request); };
  out.refuse = [](int status, const std::string& message) { return refusal(status, message); };
  out.finish = [this](const HttpRequest& request, HttpReply& reply) { finish(request, reply); };
  return out;
}

HttpReply Service::guarded(const HttpRequest& request,
                           HttpReply (Service::*handler)(const HttpRequest&)) {
  try {
    return (this->*handler)(request);
  } catch (const ApiError& error) {
    HttpReply reply;
    reply.status = error.status;
    reply.body = error_body(error.status, error.what(), error.param, error.code);
    return reply;
  }
}

bool Service::is_allowed_origin(const HttpRequest& request) const {
  const std::string origin = request.header("Origin");
  if (origin.empty() || options_.cors == "*" || origin == options_.cors) return true;
  const std::size_t scheme = origin.find("://");
  return scheme != std::string::npos && origin.substr(scheme + 3) == request.header("Host");
}

std::optional<HttpReply> Service::admit(const HttpRequest& request) const {
  if (options_.is_local && options_.api_key.empty() && !is_local_name(request.header("Host"))) {
    return refusal(
        403,
        "the Host of a request to this machine must be an address or localhost; see --api-key");
  }
  if (!is_allowed_origin(request))
    return refusal(403, "pages of other origins may not ask; see --cors");
  const auto path = paths_.find(request.path);
  if (path == paths_.end())
    return refusal(404, fmt::format("there is no {}", request.path), "not_found");
  const std::string& method = path->second;
  if (request.method == "OPTIONS" && !options_.cors.empty()) {
    HttpReply reply;
    reply.status = 204;
    reply.headers = {{"Access-Control-Allow-Methods", method + ", OPTIONS"},
                     {"Access-Control-Allow-Headers", "authorization, content-type"},
                     {"Access-Control-Max-Age", "600"}};
    return reply;
  }
  if (request.method != method && !(request.method == "HEAD" && method == "GET")) {
    HttpReply reply =
        refusal(405, fmt::format("{} takes {}", request.path, method), "method_not_allowed");
    reply.headers.emplace_back("Allow", method);
    return reply;
  }
  if (!options_.api_key.empty() && !is_open_path(request.path) &&
      !is_same_key(request.header("Authorization"), "Bearer " + options_.api_key)) {
    HttpReply reply = refusal(401, "the API key is missing or wrong", "invalid_api_key");
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
    return reply;
  }
  // Other types can be sent by any page without asking first.
  if (method == "POST" && !request.header("Content-Type").starts_with("application/json")) {
    return refusal(415, "the Content-Type must be application/json");
  }
  return {};
}

void Service::finish(const HttpRequest& request, HttpReply& reply) {
  reply.headers.emplace_back("Cache-Control", "no-store");
  reply.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (reply.status == 503) reply.headers.emplace_back("Retry-After", "1");
  if (!options_.cors.empty() && !request.header("Origin").empty() && is_allowed_origin(request)) {
    reply.headers.emplace_back("Access-Control-Allow-Origin",
                               options_.cors == "*" ? "*" : request.header("Origin"));
    if (options_.cors != "*") reply.headers.emplace_back("Vary", "Origin");
  }
  const bool is_known = paths_.contains(request.path);
  const std::lock_guard lock(mutex_);
  ++replies_[{is_known ? request.path : "other", reply.status}];
}

HttpReply Service::page(const HttpRequest&) {
  HttpReply reply;
  reply.type = "text/html; charset=utf-8";
  reply.body = page_html();
  const std::string nonce = new_nonce();
  constexpr std::string_view kPlace = "@NONCE@";
  for (std::size_t at = 0; (at = reply.body.find(kPlace, at)) != std::string::npos;) {
    reply.body.replace(at, kPlace.size(), nonce);
  }
  reply.headers = {
      {"Content-Security-Policy",
       fmt::format(
           "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; "
           "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
           nonce)},
      {"Referrer-Policy", "no-referrer"}};
  return reply;
}

HttpReply Service::health(const HttpRequest&) {
  HttpReply reply;
  reply.body = R"({"status":"ok"})";
  return reply;
}

HttpReply Service::models(const HttpRequest&) {
  const Decoder& decoder = scheduler_.decoder();
  HttpReply reply;
  reply.body = to_text({{"object", "list"},
                        {"data",
                         {{{"id", options_.model_id},
                           {"object", "model"},
                           {"created", created_},
                           {"owned_by", "local"},
                           {"max_model_len", decoder.context()},
                           {"architecture", decoder.config().architecture},
                           {"device", decoder.device().text()},
                           {"chat", template_.has_value()}}}}});
  return reply;
}

}  // namespace tl::cli::serve
