// `tl serve`: a model behind an HTTP server, for programs that speak OpenAI's API and for people at
// a page.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/default_model.h"
#include "cli/model_run.h"
#include "cli/sampling_options.h"
#include "cli/serve/http.h"
#include "cli/serve/scheduler.h"
#include "cli/serve/service.h"
#include "cli/serve/stop_signals.h"
#include "cli/sizes.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/model/engine.h"

namespace tl::cli {

namespace {

struct ServeArguments {
  std::shared_ptr<ModelOptions> model = std::make_shared<ModelOptions>();
  std::shared_ptr<TextOptions> text = std::make_shared<TextOptions>();
  serve::HttpOptions http;
  serve::SchedulerOptions scheduler;
  std::string name, api_key, cors;
  std::string body = "8MiB", prefix_cache = "256MiB";
  std::int64_t chunk = 512;
  double grace = 10;
};

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// The first signal has come: what runs may end by itself for a while, then it is ended.
void wind_down(serve::HttpServer& server, serve::Scheduler& scheduler, serve::StopSignals& signals,
               double grace) {
  server.close();
  constexpr double kLook = 0.05;
  for (double waited = 0; waited < grace && signals.count() < 2; waited += kLook) {
    if (server.wait_idle(kLook)) return;
  }
  scheduler.cancel_all();
  constexpr double kFarewell = 2;  // for the clients to be told
  if (!server.wait_idle(kFarewell)) server.cut();
  server.join();
}

std::string url_of(const std::string& host, int port) {
  return fmt::format("http://{}:{}/", host.find(':') == std::string::npos ? host : "[" + host + "]",
                     port);
}

void serve_model(const ServeArguments& options, LoadedModel& model) {
  serve::ServiceOptions how;
  how.model_id = options.name.empty() ? std::filesystem::path(options.model->path).stem().string()
                                      : options.name;
  how.api_key = options.api_key;
  how.cors = options.cors;
  how.text = *options.text;
  how.is_local = is_loopback(options.http.host);
  std::optional<ChatTemplate> chat_template = ChatTemplate::from_gguf(model.file);
  if (!options.model->chat_template.empty())
    chat_template = ChatTemplate::builtin(options.model->chat_template);
  if (!chat_template) {
    fmt::print(stderr,
               "tl: {} the model has no chat template, so /v1/chat/completions needs --template\n",
               coloured(stderr, Colour::Yellow, "warning:"));
  }
  if (!how.is_local && how.api_key.empty()) {
    fmt::print(stderr, "tl: {} everyone who reaches {} may use the model; see --api-key\n",
               coloured(stderr, Colour::Yellow, "warning:"), options.http.host);
  }
  Engine engine(
      model.decoder, model.tokenizer(options.model->quiet),
      {.sequences = static_cast<std::int64_t>(options.scheduler.parallel), .step_tokens = 0});
  serve::StopSignals signals;
  serve::Scheduler scheduler(std::move(engine), options.scheduler);
  serve::Service service(scheduler, std::move(chat_template), std::move(how));
  serve::HttpServer server(options.http, service.routes());
  service.connections = [&server] { return server.connections(); };
  // A script waits for this line, so it comes whatever --quiet says.
  fmt::print("listening on {}\n", url_of(options.http.host, server.port()));
  std::fflush(stdout);
  server.accept_until(signals.file());
  if (!options.model->quiet) fmt::print(stderr, "stopping; once more to stop at once\n");
  wind_down(server, scheduler, signals, options.grace);
  model.memory.note_cache(scheduler.numbers().peak_cache_bytes);
}

int serve_command(ServeArguments& options) {
  options.http.body_bytes = parse_bytes(options.body);
  options.scheduler.prefix_bytes = parse_bytes(options.prefix_cache);
  options.model->path = model_or_default(options.model->path);
  with_model(*options.model, options.chunk,
             [&](LoadedModel& model) { serve_model(options, model); });
  return 0;
}

void add_limits(CLI::App& command, ServeArguments& to) {
  const auto count = [&](const char* name, std::size_t& value, const char* help,
                         std::size_t least) {
    command.add_option(name, value, help)
        ->type_name("N")
        ->check(CLI::Range(least, std::size_t{1} << 16))
        ->capture_default_str();
  };
  const auto seconds = [&](const char* name, double& value, const char* help) {
    command.add_option(name, value, help)
        ->type_name("SECONDS")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
  };
  count("--parallel", to.scheduler.parallel, "requests that are worked on at once", 1);
  count("--queue", to.scheduler.queue, "requests that may wait; more are refused with 503", 0);
  count("--connections", to.http.connections, "connections at once", 1);
  command.add_option("--body", to.body, "the largest request; larger ones are refused with 413")
      ->type_name("SIZE")
      ->capture_default_str();
  command
      .add_option("--prefix-cache", to.prefix_cache,
                  "memory for conversations that ended, so that what begins alike is not computed "
                  "again; 0 for none")
      ->type_name("SIZE")
      ->capture_default_str();
  seconds("--timeout", to.scheduler.seconds,
          "for a request, waiting too; 0 for as long as it takes");
  seconds("--read-timeout", to.http.read_seconds, "for a request to arrive");
  seconds("--write-timeout", to.http.write_seconds, "for a client to take a part of its answer");
  seconds("--idle-timeout", to.http.idle_seconds, "for a connection without a request");
  seconds("--grace", to.grace, "after Ctrl-C or SIGTERM, for what runs to end");
}

}  // namespace

void add_serve(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<ServeArguments>();
  CLI::App& command =
      *app.add_subcommand("serve", "answer HTTP requests by OpenAI's API, with a page to chat at");
  add_model_options(command, options->model);
  command
      .add_option("--host", options->http.host,
                  "the address to listen at; 0.0.0.0 for all of this machine's")
      ->capture_default_str();
  command.add_option("--port", options->http.port, "0 for one that is free")
      ->type_name("N")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command.add_option("--name", options->name, "of the model in the API; else its file's")
      ->type_name("NAME");
  command.add_option("--api-key", options->api_key, "what clients must know")
      ->type_name("KEY")
      ->envname("TL_API_KEY");
  command.add_option("--cors", options->cors, "an origin whose pages may ask, or * for all")
      ->type_name("ORIGIN");
  add_limits(command, *options);
  command.add_option("--chunk", options->chunk, "tokens of prompts that are computed together")
      ->type_name("N")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  add_template_option(command, options->model);
  add_text_options(command, options->text);
  command.footer(
      "What a request does not say about sampling is as given here; --max-tokens is the most of "
      "any answer.");
  command.callback([options, &chosen] { chosen = [options] { return serve_command(*options); }; });
}

}  // namespace tl::cli
