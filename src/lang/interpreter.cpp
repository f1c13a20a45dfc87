#include "tl/lang/interpreter.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "lang/compile.h"
#include "lang/format.h"
#include "lang/lexer.h"
#include "lang/parser.h"
#include "lang/shapes.h"
#include "lang/vm.h"

namespace tl {

namespace fs = std::filesystem;
using lang::Diagnostic;
using lang::Severity;

namespace {

ProgramMessage to_message(const lang::Sources& sources, const Diagnostic& d, bool colour) {
  ProgramMessage m;
  m.is_error = d.severity == Severity::Error;
  m.message = d.message;
  if (d.span.source < sources.size()) {
    const lang::Source& source = sources[d.span.source];
    const lang::Position at = source.position(d.span.begin);
    m.file = source.name();
    m.line = at.line;
    m.column = at.column;
  }
  m.text = lang::render(sources, d, colour);
  m.json = lang::render_json(sources, d);
  return m;
}

std::string read_source(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw Error(ErrorKind::BadFile, "run", path, " is a folder");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorKind::BadFile, "run", "File not found: ", path);
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) throw Error(ErrorKind::BadFile, "run", "cannot read ", path);
  return std::move(text).str();
}

}  // namespace

struct Interpreter::State {
  explicit State(InterpreterOptions o) : options(std::move(o)), vm(world) {
    if (options.open_device) {
      vm.device = lang::LazyDevice(options.open_device);
    } else {
      vm.device = options.device;
    }
    vm.out = options.out != nullptr ? options.out : &std::cout;
    vm.in = options.in != nullptr ? options.in : &std::cin;
    vm.arguments = options.arguments;
    vm.verbose = options.verbose;
    vm.allow_files = options.allow_files;
    vm.perf = options.perf;
    vm.shares = options.shares;
    vm.on_learn = options.on_learn;
    vm.step_limit = options.step_limit;
    vm.interrupted = options.interrupted;
  }

  InterpreterOptions options;
  lang::World world;
  lang::Vm vm;  // after the world, which it looks at when it ends
  lang::CompiledProgram compiled;
  std::vector<ProgramMessage> messages;
  std::size_t declaration_count = 0;
  std::vector<std::string> tests, benches;
  std::uint32_t inputs = 0;
  std::vector<std::string> importing;  // files on the way to the one being read
  std::vector<std::string> imported;   // files that were read

  bool tell(const std::vector<Diagnostic>& diagnostics) {
    bool good = true;
    for (const Diagnostic& d : diagnostics) {
      good &= d.severity != Severity::Error;
      messages.push_back(to_message(world.sources, d, options.colour));
    }
    return good;
  }

  bool load(std::string name, std::string text, const std::string& path) {
    std::vector<Diagnostic> diagnostics;
    std::vector<lang::ast::Program> programs;
    if (!path.empty()) importing.push_back(fs::weakly_canonical(path).string());
    const std::uint32_t source = world.sources.add(std::move(name), std::move(text));
    read(source, programs, diagnostics, path.empty() ? fs::current_path() : fs::path(path));
    importing.clear();
    if (!tell(diagnostics)) return false;
    declaration_count = programs.back().declarations.size();
    return compile(programs, {});
  }

  // Reads a source and, before it, what it imports.
  void read(std::uint32_t source, std::vector<lang::ast::Program>& programs,
            std::vector<Diagnostic>& diagnostics, const fs::path& path) {
    lang::ast::Program program = lang::parse_program(world.sources, source, diagnostics);
    read_imports(program, programs, diagnostics,
                 fs::is_directory(path) ? path : path.parent_path());
    programs.push_back(std::move(program));
  }

  void read_imports(const lang::ast::Program& program, std::vector<lang::ast::Program>& programs,
                    std::vector<Diagnostic>& diagnostics, const fs::path& folder) {
    for (const lang::ast::DeclarationPtr& d : program.declarations) {
      if (d->kind != lang::ast::Declaration::Kind::Import) continue;
      const std::string& wanted = lang::ast::as<lang::ast::ImportDeclaration>(*d).path;
      const fs::path path = folder / wanted;
      const auto complain = [&](std::string message) {
        diagnostics.push_back({Severity::Error, std::move(message), d->span, {}, {}});
      };
      std::error_code problem;
      const std::string full = fs::weakly_canonical(path, problem).string();
      if (std::find(importing.begin(), importing.end(), full) != importing.end()) {
        complain(join("Circular import detected: File already imported: \"", wanted, "\""));
        continue;
      }
      if (std::find(imported.begin(), imported.end(), full) != imported.end()) continue;
      if (!options.allow_files) {
        complain("this program may not use files");
        continue;
      }
      std::string text;
      try {
        text = read_source(full);
      } catch (const Error&) {
        complain(join("File not found: Cannot resolve import path '", wanted, "'"));
        continue;
      }
      imported.push_back(full);
      importing.push_back(full);
      const std::uint32_t source =
          world.sources.add(path.lexically_normal().string(), std::move(text));
      read(source, programs, diagnostics, full);
      importing.pop_back();
    }
  }

  bool compile(const std::vector<lang::ast::Program>& programs,
               lang::CompileOptions compile_options) {
    compile_options.undeclared_relations = options.undeclared_relations;
    std::vector<Diagnostic> diagnostics;
    std::vector<const lang::ast::Program*> pointers;
    for (const lang::ast::Program& p : programs) pointers.push_back(&p);
    compiled = lang::compile(world, pointers, compile_options, diagnostics);
    const bool sound = std::none_of(diagnostics.begin(), diagnostics.end(),
                                    [](const auto& d) { return d.severity == Severity::Error; });
    if (sound && !compile_options.at_prompt) lang::check_shapes(pointers, diagnostics);
    tests.clear();
    benches.clear();
    for (const auto& [name, f] : compiled.tests) tests.push_back(name);
    for (const auto& [name, f] : compiled.benches) benches.push_back(name);
    return tell(diagnostics);
  }

  // Runs something and gives what goes wrong its form for the outside.
  template <class F>
  void guarded(F&& f) {
    try {
      f();
      vm.out->flush();
    } catch (const lang::ProgramError& e) {
      vm.out->flush();
      throw ProgramFailed(to_message(world.sources, e.diagnostic(), options.colour));
    }
  }

  void run(const lang::Function& block) {
    guarded([&] {
      // Where nothing asks for gradients, what is computed with parameters needs no history.
      const HistoryScope history(world.differentiates);
      vm.clear_globals();
      try {
        vm.run(*compiled.declarations);
        vm.run(block);
        vm.synchronize(block);
      } catch (...) {
        drop_globals();
        throw;
      }
      vm.clear_globals();
    });
  }

  // After an error: what Drop methods have to say to it is not heard.
  void drop_globals() noexcept {
    try {
      vm.clear_globals();
    } catch (...) {
      vm.forget_globals();
    }
  }
};

Interpreter::Interpreter(InterpreterOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
Interpreter::~Interpreter() { state_->drop_globals(); }

bool Interpreter::load_file(const std::string& path) {
  return state_->load(path, read_source(path), path);
}
bool Interpreter::load_text(std::string name, std::string text) {
  return state_->load(std::move(name), std::move(text), {});
}

const std::vector<ProgramMessage>& Interpreter::messages() const noexcept {
  return state_->messages;
}

std::string Interpreter::report() const {
  std::string out;
  std::size_t errors = 0;
  for (const ProgramMessage& m : state_->messages) {
    out += m.text;
    if (m.is_error) ++errors;
  }
  if (!state_->messages.empty()) {
    out += join("\nFound ", errors, " error(s) and ", state_->messages.size() - errors,
                " warning(s)\n");
  }
  return out;
}

std::size_t Interpreter::declarations() const noexcept { return state_->declaration_count; }
bool Interpreter::has_main() const noexcept { return state_->compiled.main != nullptr; }
const std::vector<std::string>& Interpreter::tests() const noexcept { return state_->tests; }
const std::vector<std::string>& Interpreter::benches() const noexcept { return state_->benches; }

void Interpreter::run_main() {
  static const lang::Function nothing = [] {
    lang::Function f;
    f.name = "main";
    f.code.push_back({lang::Op::ReturnVoid, 0, 0, 0, 0});
    f.spans.emplace_back();
    return f;
  }();
  state_->run(has_main() ? *state_->compiled.main : nothing);
}
void Interpreter::run_test(std::size_t index) {
  state_->run(*state_->compiled.tests[index].second);
}
void Interpreter::run_bench(std::size_t index) {
  state_->run(*state_->compiled.benches[index].second);
}
void Interpreter::clear() {
  state_->guarded([&] { state_->vm.clear_globals(); });
}

Interpreter::Input Interpreter::enter(std::string text, std::string& value) {
  State& s = *state_;
  value.clear();
  s.messages.clear();
  const std::uint32_t source = s.world.sources.add(join("input ", ++s.inputs), std::move(text));
  std::vector<Diagnostic> diagnostics;
  bool incomplete = false;
  std::vector<lang::ast::Program> programs;
  lang::ast::Program input = lang::parse_input(s.world.sources, source, diagnostics, incomplete);
  if (incomplete) {
    --s.inputs;
    return Input::Incomplete;
  }
  s.read_imports(input, programs, diagnostics, fs::current_path());
  programs.push_back(std::move(input));
  if (!s.tell(diagnostics) || !s.compile(programs, {.at_prompt = true})) return Input::Failed;
  try {
    s.guarded([&] {
      const HistoryScope history(true);
      s.vm.run(*s.compiled.declarations);
      if (s.compiled.main == nullptr) return;
      const lang::Value result = s.vm.run(*s.compiled.main);
      if (!result.is(lang::Kind::Void)) value = lang::quoted(result);
      s.vm.synchronize(*s.compiled.main);
    });
  } catch (const ProgramFailed& e) {
    s.messages.push_back(e.message);
    return Input::Failed;
  }
  return Input::Done;
}

std::vector<std::pair<std::string, std::string>> Interpreter::variables() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, slot] : state_->world.globals) {
    const lang::Value& value = state_->vm.global(slot);
    if (value.is(lang::Kind::Missing) || value.is(lang::Kind::Void)) continue;
    out.emplace_back(name, lang::quoted(value));
  }
  return out;
}

std::vector<std::string> Interpreter::names() const {
  std::vector<std::string> out;
  for (const auto& [name, slot] : state_->world.globals) out.push_back(name);
  for (const auto& [name, f] : state_->world.functions) out.push_back(name);
  for (const auto& [name, s] : state_->world.structs) out.push_back(name);
  return out;
}

std::vector<BuiltinHelp> builtin_help() {
  std::vector<BuiltinHelp> out;
  for (const lang::Builtin* b : lang::BuiltinTable::instance().all()) {
    out.push_back({std::string(b->name), std::string(b->signature), std::string(b->section),
                   std::string(b->help)});
  }
  return out;
}

std::vector<std::string> language_keywords() {
  const auto words = lang::reserved_words();
  return {words.begin(), words.end()};
}

std::string format_program(std::string name, std::string text,
                           std::vector<ProgramMessage>& messages) {
  lang::Sources sources;
  std::vector<Diagnostic> diagnostics;
  const std::uint32_t source = sources.add(std::move(name), std::move(text));
  std::string out = lang::format(sources, source, diagnostics);
  for (const Diagnostic& d : diagnostics) messages.push_back(to_message(sources, d, false));
  return out;
}

}  // namespace tl
