#include "runtime/driver/rtc.h"

#include <list>
#include <mutex>
#include <utility>

#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::driver {

namespace {

class OwnedProgram {
 public:
  explicit OwnedProgram(const RtcApi& api) : api_(api) {}
  ~OwnedProgram() {
    if (program_ != nullptr) api_.destroy_program(&program_);
  }
  OwnedProgram(const OwnedProgram&) = delete;
  OwnedProgram& operator=(const OwnedProgram&) = delete;

  RtcApi::Program get() const noexcept { return program_; }
  RtcApi::Program* slot() noexcept { return &program_; }

 private:
  const RtcApi& api_;
  RtcApi::Program program_ = nullptr;
};

std::string read_log(const RtcApi& api, RtcApi::Program program) {
  std::size_t bytes = 0;
  if (api.log_size(program, &bytes) != 0 || bytes == 0) return {};
  std::string text(bytes + 1, '\0');
  if (api.log(program, text.data()) != 0) return {};
  text.resize(text.find('\0'));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

Library open_rtc_library(const char* override_variable, std::span<const std::string> names,
                         const std::string& probe, std::string* reason) {
  reason->clear();
  for (const std::string& name : names) {
    Library library = Library::open(override_variable, std::span(&name, 1));
    if (library && library.symbol(probe.c_str()) != nullptr) return library;
    const std::string problem =
        library ? join(library.file(), " has no ", probe) : library.reason();
    // The first name is the one that people know; the rest are other places for the same thing.
    if (reason->empty()) *reason = problem;
    if (!environment(override_variable).empty()) break;
  }
  return {};
}

std::string load_rtc_api(const Library& library, const std::string& prefix, RtcApi* api) {
  const auto name = [&](const char* rest) { return prefix + rest; };
  Symbols symbols(library);
  symbols.need(api->version, name("Version").c_str())
      .need(api->error_string, name("GetErrorString").c_str())
      .need(api->create_program, name("CreateProgram").c_str())
      .need(api->compile_program, name("CompileProgram").c_str())
      .need(api->destroy_program, name("DestroyProgram").c_str())
      .need(api->log_size, name("GetProgramLogSize").c_str())
      .need(api->log, name("GetProgramLog").c_str());
  return symbols.missing();
}

const CompilerTable* keep_compiler(CompilerTable table) {
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::list<CompilerTable>;
  const std::lock_guard lock(*mutex);
  return &kept->emplace_back(std::move(table));
}

bool rtc_compile(const RtcApi& api, const RtcOutput& output, const Source& program,
                 std::span<const Source> headers, std::span<const std::string> options,
                 std::vector<std::byte>* image, std::string* log) {
  // The C interface wants ends marked by zeros; views need not have them.
  const std::string text(program.text);
  const std::string name(program.name);
  std::vector<std::string> copies;
  copies.reserve(2 * headers.size());
  std::vector<const char*> header_texts;
  std::vector<const char*> header_names;
  for (const Source& header : headers) {
    header_texts.push_back(copies.emplace_back(header.text).c_str());
    header_names.push_back(copies.emplace_back(header.name).c_str());
  }
  std::vector<const char*> option_texts;
  for (const std::string& option : options) option_texts.push_back(option.c_str());

  const auto refuse = [&](const char* step, int status, const std::string& words) {
    const char* known = api.error_string(status);
    *log = join(step, ": ", known == nullptr ? "unknown error" : known, " (", status, ")",
                words.empty() ? "" : "\n", words);
    return false;
  };

  // One at a time in the whole process: hipRTC 5 parses its options into LLVM's global tables, and
  // two threads that do so at once make it end the process ("Option registered more than once").
  static auto* const one_at_a_time = new std::mutex;
  const std::lock_guard lock(*one_at_a_time);
  OwnedProgram owned(api);
  int status = api.create_program(owned.slot(), text.c_str(), name.c_str(),
                                  static_cast<int>(header_texts.size()), header_texts.data(),
                                  header_names.data());
  if (status != 0) return refuse("creating the program", status, {});
  status =
      api.compile_program(owned.get(), static_cast<int>(option_texts.size()), option_texts.data());
  *log = read_log(api, owned.get());
  if (status != 0) return refuse("compiling", status, *log);

  std::size_t bytes = 0;
  status = output.size(owned.get(), &bytes);
  if (status != 0) return refuse("reading the result's size", status, *log);
  if (bytes == 0) return refuse("reading the result", 0, "the compiler gave an empty result");
  image->assign(bytes, std::byte{0});
  status = output.bytes(owned.get(), reinterpret_cast<char*>(image->data()));
  if (status != 0) return refuse("reading the result", status, *log);
  return true;
}

}  // namespace tl::driver
