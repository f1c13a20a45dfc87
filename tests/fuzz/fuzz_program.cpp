// A fuzzer for programs: any bytes are read into a tree or into mistakes that can be shown, soon.
// What has no mistakes means the same when it is formatted, and formatting it again changes
// nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "lang/dump.h"
#include "lang/format.h"
#include "lang/parser.h"

namespace {

constexpr std::size_t kMostMistakes = 20;

void check(bool is_right) {
  if (!is_right) std::abort();
}

std::string tree(const tl::lang::Sources& sources, std::uint32_t source) {
  std::vector<tl::lang::Diagnostic> diagnostics;
  std::string out = tl::lang::dump(tl::lang::parse_program(sources, source, diagnostics));
  check(diagnostics.empty());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tl::lang::Diagnostic;
  tl::lang::Sources sources;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::uint32_t id = sources.add("fuzz.tl", text);

  std::vector<Diagnostic> diagnostics;
  bool incomplete = false;
  tl::lang::dump(tl::lang::parse_input(sources, id, diagnostics, incomplete));
  check(!incomplete || diagnostics.empty());

  diagnostics.clear();
  tl::lang::dump(tl::lang::parse_program(sources, id, diagnostics));
  check(diagnostics.size() <= kMostMistakes);
  for (const Diagnostic& diagnostic : diagnostics) {
    check(diagnostic.span.begin <= diagnostic.span.end && diagnostic.span.end <= size);
    check(!tl::lang::render(sources, diagnostic, true).empty());
    check(!tl::lang::render_json(sources, diagnostic).empty());
  }

  const bool has_mistakes = !diagnostics.empty();
  const std::string once = tl::lang::format(sources, id, diagnostics);
  if (has_mistakes) {
    check(once == text);
    return 0;
  }
  const std::uint32_t formatted = sources.add("once.tl", once);
  check(tree(sources, formatted) == tree(sources, id));
  check(tl::lang::format(sources, formatted, diagnostics) == once);
  return 0;
}
