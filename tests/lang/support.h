// What tests of the front end of the language share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "lang/diagnostic.h"
#include "lang/dump.h"
#include "lang/parser.h"

namespace tl::lang {

// "3:14 message" per mistake.
inline std::vector<std::string> mistakes(const Sources& sources,
                                         const std::vector<Diagnostic>& diagnostics) {
  constexpr std::string_view kStart = "Parse error: ";
  std::vector<std::string> out;
  for (const Diagnostic& d : diagnostics) {
    EXPECT_TRUE(d.message.starts_with(kStart)) << d.message;
    const Position at = sources[d.span.source].position(d.span.begin);
    out.push_back(std::to_string(at.line) + ":" + std::to_string(at.column) + " " +
                  d.message.substr(kStart.size()));
  }
  return out;
}

struct Parsed {
  std::string tree;
  std::vector<std::string> mistakes;
  std::vector<std::string> hints;
};

inline Parsed parsed(std::string_view text) {
  Sources sources;
  const std::uint32_t id = sources.add("test.tl", std::string(text));
  std::vector<Diagnostic> diagnostics;
  const ast::Program program = parse_program(sources, id, diagnostics);
  Parsed out{dump(program), mistakes(sources, diagnostics), {}};
  for (const Diagnostic& d : diagnostics) out.hints.push_back(d.hint);
  return out;
}

// The tree of a program without mistakes.
inline std::string tree(std::string_view text) {
  const Parsed out = parsed(text);
  EXPECT_EQ(out.mistakes, std::vector<std::string>{}) << text;
  return out.tree;
}

// The tree of statements, those of main.
inline std::string body(std::string_view statements) {
  std::string out = tree("main {\n" + std::string(statements) + "\n}");
  constexpr std::string_view kStart = "(main {";
  constexpr std::string_view kEnd = "})\n";
  if (!out.starts_with(kStart) || !out.ends_with(kEnd)) return out;
  return out.substr(kStart.size(), out.size() - kStart.size() - kEnd.size());
}

// Mistakes in statements; lines count from the first of them.
inline std::vector<std::string> mistakes_in(std::string_view statements) {
  return parsed("main {" + std::string(statements) + "\n}").mistakes;
}

using Texts = std::vector<std::string>;

}  // namespace tl::lang
