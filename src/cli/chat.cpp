// `tl chat`: a conversation with a model, at a terminal, line by line from a pipe, or with
// questions of the command line.
#include "cli/chat.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "cli/chat_session.h"
#include "cli/command.h"
#include "cli/default_model.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/model/engine.h"

namespace tl::cli {

namespace {

constexpr const char* kChatWhere = "chat";

constexpr std::string_view kHelp =
    "/help          this list\n"
    "/system TEXT   how the model should be; without a text: what was said\n"
    "/reset         forget the chat, but not /system\n"
    "/fork          go on in a copy of this chat\n"
    "/switch N      go to chat N\n"
    "/save FILE     write the chat to a file\n"
    "/load FILE     read one\n"
    "/stats         tokens, speed and memory\n"
    "/retry         the last answer once more\n"
    "/quit          end, as Ctrl-D does; Ctrl-C only ends an answer\n"
    "//...          a message that begins with a slash; a \\ at the end of a line: it goes on\n";

class Conversation {
 public:
  Conversation(const ChatArguments& options, LoadedModel& model)
      : options_(options),
        model_(model),
        engine_(model.decoder, model.tokenizer(options.model->quiet),
                {.sequences = 1, .step_tokens = 0}),
        session_(engine_, model.chat_template(*options.model), with_bar(*options.text)),
        editor_("> ") {
    session_.set_system(options.system);
  }

  void run() {
    if (!options_.ask.empty()) {
      ask_all();
      return;
    }
    if (editor_.is_terminal() && !options_.model->quiet) greet();
    while (const std::optional<std::string> line = editor_.read()) {
      if (!editor_.is_terminal() && interrupted()) break;
      if (line->empty()) continue;
      try {
        if (!handle(*line)) break;
      } catch (const Error& error) {
        // A person reads it and goes on; a script must not.
        if (!editor_.is_terminal()) throw;
        fmt::print(stderr, "{} {}\n", coloured(stderr, Colour::Red, "error:"), error.what());
      }
      note_memory();
    }
    if (!editor_.is_terminal() && interrupted()) {
      throw Error(ErrorKind::BadArgument, kChatWhere, "it was interrupted");
    }
  }

 private:
  // The questions of the command line, with their answers. The first error ends it.
  void ask_all() {
    GenerationStatistics sum;
    for (const std::string& question : options_.ask) {
      if (options_.separate) session_.reset();
      fmt::print("{}\n", coloured(stdout, Colour::Bold, "> " + for_terminal(question)));
      answer([&](const auto& show) { return session_.say(question, show); });
      if (interrupted()) throw Error(ErrorKind::BadArgument, kChatWhere, "it was interrupted");
      sum.prompt_tokens += last_->prompt_tokens - last_->reused_tokens;
      sum.prompt_seconds += last_->prompt_seconds;
      sum.generated_tokens += last_->generated_tokens;
      sum.answer_seconds += last_->answer_seconds;
      note_memory();
    }
    if (options_.model->quiet) return;
    const auto line = fmt::format(
        "prompts: {} tokens in {}{}, answers: {} tokens in {}{}", sum.prompt_tokens,
        format_duration(sum.prompt_seconds), in_brackets(sum.prompt_speed()), sum.generated_tokens,
        format_duration(sum.answer_seconds), in_brackets(sum.answer_speed()));
    fmt::print(stderr, "{}\n", coloured(stderr, Colour::Dim, line));
  }

  void note_memory() {
    model_.memory.note_cache(engine_.peak_cache_bytes());
    model_.memory.note_cache(session_.cache_bytes());
  }

  void greet() const {
    fmt::print(
        "{}\n",
        coloured(stdout, Colour::Dim,
                 fmt::format("{} on {}, {} of context, loaded in {}; /help for help",
                             model_.file.get_or<std::string>("general.name", options_.model->path),
                             model_.decoder.device().text(), model_.decoder.context(),
                             format_duration(model_.load_seconds))));
  }

  // Whether there is more to come.
  bool handle(const std::string& line) {
    if (!line.starts_with('/')) {
      answer([&](const auto& show) { return session_.say(line, show); });
    } else if (line.starts_with("//")) {
      answer([&](const auto& show) { return session_.say(line.substr(1), show); });
    } else {
      const std::size_t space = std::min(line.find(' '), line.size());
      std::string_view rest = std::string_view(line).substr(space);
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      return command(line.substr(0, space), std::string(rest));
    }
    return true;
  }

  bool command(const std::string& name, const std::string& rest) {
    if (name == "/quit" || name == "/exit") return false;
    if (name == "/help") {
      write_output(kHelp);
    } else if (name == "/system") {
      if (!rest.empty()) session_.set_system(rest);
      note(session_.system().empty() ? "nothing is set" : "system: " + session_.system());
    } else if (name == "/reset") {
      session_.reset();
      note("a new chat");
    } else if (name == "/fork") {
      const std::size_t from = session_.current();
      note(fmt::format("this is chat {}; /switch {} goes back", session_.fork(), from));
    } else if (name == "/switch") {
      go_to(rest);
    } else if (name == "/save") {
      session_.save(path_of(name, rest));
      note(fmt::format("{} messages are in {}", session_.messages(), rest));
    } else if (name == "/load") {
      session_.load(path_of(name, rest));
      note(fmt::format("{} messages from {}", session_.messages(), rest));
    } else if (name == "/stats") {
      statistics();
    } else if (name == "/retry") {
      answer([&](const auto& show) { return session_.retry(show); });
    } else {
      const std::vector<std::string> names{"/help", "/system", "/reset", "/fork",  "/switch",
                                           "/save", "/load",   "/stats", "/retry", "/quit"};
      const std::string meant = nearest(name, names);
      throw Error(ErrorKind::BadArgument, kChatWhere, "there is no command '", name, "'",
                  meant.empty() ? "" : "; did you mean '" + meant + "'?",
                  " /help lists them, // begins a message with a slash");
    }
    return true;
  }

  static std::string path_of(const std::string& name, const std::string& rest) {
    if (rest.empty()) throw Error(ErrorKind::BadArgument, kChatWhere, name, " needs a file");
    return rest;
  }

  void go_to(const std::string& text) {
    std::size_t number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size()) {
      throw Error(ErrorKind::BadArgument, kChatWhere, "/switch needs a number from 1 to ",
                  session_.count(), ", not ", in_quotes(text));
    }
    session_.go_to(number);
    note(fmt::format("this is chat {} of {}, with {} messages", number, session_.count(),
                     session_.messages()));
  }

  // How much of a prompt is read, while it is: nothing is left of it when the answer begins.
  TextOptions with_bar(TextOptions options) {
    options.on_prompt = [this](std::int64_t done, std::int64_t total) {
      if (done >= total) {
        reading_.reset();
        return;
      }
      if (!reading_) {
        reading_ =
            std::make_unique<Progress>("prompt", static_cast<std::uint64_t>(total), "tokens");
      }
      reading_->set(static_cast<std::uint64_t>(done));
    };
    return options;
  }
  // Nor when there is none.
  template <class Ask>
  GenerationResult with_bar_gone(Ask&& ask) {
    struct Gone {
      std::unique_ptr<Progress>& bar;
      ~Gone() { bar.reset(); }
    } const gone{reading_};
    return ask();
  }

  template <class Ask>
  void answer(Ask&& ask) {
    if (editor_.is_terminal()) clear_interrupt();
    bool ends_line = true;
    const GenerationResult result = with_bar_gone([&] {
      return ask([&](std::string_view text) {
        write_output(for_terminal(text));
        ends_line = text.ends_with('\n');
      });
    });
    if (!ends_line || result.text.empty()) write_output("\n");
    last_ = result.statistics;
    if (result.reason == FinishReason::Length) {
      note("the answer was cut: its length or the context is at its end");
    }
    if (result.reason == FinishReason::Cancelled) note("the answer was stopped");
  }

  void statistics() const {
    const auto count = [](std::int64_t n) { return format_count(static_cast<std::uint64_t>(n)); };
    fmt::print("context   {} of {} positions, {} in {} chat{}\n", count(session_.positions()),
               count(model_.decoder.context()), format_bytes(session_.cache_bytes()),
               session_.count(), session_.count() == 1 ? "" : "s");
    if (!last_) return;
    fmt::print("prompt    {} tokens, {} of them from the cache, {} computed in {}{}\n",
               count(last_->prompt_tokens), count(last_->reused_tokens),
               count(last_->prompt_tokens - last_->reused_tokens),
               format_duration(last_->prompt_seconds), in_brackets(last_->prompt_speed()));
    fmt::print("answer    {} tokens in {}{}\n", count(last_->generated_tokens),
               format_duration(last_->answer_seconds), in_brackets(last_->answer_speed()));
  }
  static std::string in_brackets(double tokens_per_second) {
    return tokens_per_second > 0 ? fmt::format(" ({})", format_speed(tokens_per_second)) : "";
  }

  // For people only: a pipe has answers and what was asked for.
  void note(const std::string& text) const {
    if (editor_.is_terminal()) fmt::print("{}\n", coloured(stdout, Colour::Dim, text));
  }

  const ChatArguments& options_;
  LoadedModel& model_;
  std::unique_ptr<Progress> reading_;
  Engine engine_;
  ChatSession session_;
  LineEditor editor_;
  std::optional<GenerationStatistics> last_;
};

}  // namespace

int chat(const ChatArguments& options) {
  expect_utf8(kChatWhere, options.system);
  for (const std::string& question : options.ask) {
    if (question.empty()) throw Error(ErrorKind::BadArgument, kChatWhere, "--ask has no text");
    expect_utf8(kChatWhere, question);
  }
  options.model->path = model_or_default(options.model->path);
  with_model(*options.model, options.chunk,
             [&](LoadedModel& model) { Conversation(options, model).run(); });
  return 0;
}

void add_chat(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<ChatArguments>();
  CLI::App& command =
      *app.add_subcommand("chat", "talk with a model; /help there lists what can be done");
  add_model_options(command, options->model);
  command.add_option("--system", options->system, "how the model should be")->type_name("TEXT");
  command
      .add_option("--ask", options->ask,
                  "say this and print the answer, instead of reading messages; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  add_template_option(command, options->model);
  add_text_options(command, options->text);
  command.add_option("--chunk", options->chunk, "tokens of prompts that are computed together")
      ->type_name("N")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.callback([options, &chosen] { chosen = [options] { return chat(*options); }; });
}

}  // namespace tl::cli
