// The subcommands of `tl`. Each declares itself to the parser; what it has to do is run after
// parsing, so that a failure in it is never mistaken for a usage error.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace tl::cli {

// What the command line asked for; returns the exit code.
using Action = std::function<int()>;

void add_bench(CLI::App& app, Action& chosen);
void add_chat(CLI::App& app, Action& chosen);
void add_check(CLI::App& app, Action& chosen);
void add_convert(CLI::App& app, Action& chosen);
void add_devices(CLI::App& app, Action& chosen);
void add_demo(CLI::App& app, Action& chosen);
void add_demo_chat(CLI::App& demo, Action& chosen);
void add_demo_memory(CLI::App& demo, Action& chosen);
void add_demo_tensors(CLI::App& demo, Action& chosen);
void add_doc(CLI::App& app, Action& chosen);
void add_fmt(CLI::App& app, Action& chosen);
void add_generate(CLI::App& app, Action& chosen);
void add_inspect(CLI::App& app, Action& chosen);
void add_load(CLI::App& app, Action& chosen);
void add_logits(CLI::App& app, Action& chosen);
void add_mem(CLI::App& app, Action& chosen);
void add_ops(CLI::App& app, Action& chosen);
void add_quantize(CLI::App& app, Action& chosen);
void add_repl(CLI::App& app, Action& chosen);
void add_run(CLI::App& app, Action& chosen);
void add_serve(CLI::App& app, Action& chosen);  // where TL_HAS_SERVE is defined
void add_test(CLI::App& app, Action& chosen);
void add_tokenize(CLI::App& app, Action& chosen);
void add_tokenizer(CLI::App& app, Action& chosen);
void add_train(CLI::App& app, Action& chosen);

// --device: what Device::parse() takes, "auto" when it is not given.
void add_device_option(CLI::App& command, const std::shared_ptr<std::string>& device);
// -q, --quiet: the command shows no progress.
void add_quiet_option(CLI::App& command);

}  // namespace tl::cli
