#include "model/stop_strings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tl {
namespace {

// What is shown of `text` when it comes in pieces of `size` bytes, with a bar where the stop was.
std::string shown(const std::vector<std::string>& stops, const std::string& text,
                  std::size_t size) {
  StopStrings filter(stops);
  std::string out;
  for (std::size_t at = 0; at < text.size() && !filter.found(); at += size) {
    out += filter.push(std::string_view(text).substr(at, size));
  }
  out += filter.flush();
  return filter.found() ? out + "|" : out;
}

void expect_shown(const std::vector<std::string>& stops, const std::string& text,
                  const std::string& expected) {
  for (std::size_t size = 1; size <= text.size(); ++size) {
    EXPECT_EQ(shown(stops, text, size), expected) << "in pieces of " << size;
  }
}

TEST(StopStrings, NothingIsHeldBackWithoutThem) {
  StopStrings none({});
  EXPECT_EQ(none.push("any text"), "any text");
  EXPECT_EQ(none.flush(), "");
  EXPECT_FALSE(none.found());
}

TEST(StopStrings, TheTextEndsBeforeTheStop) {
  expect_shown({"END"}, "one two END three", "one two |");
  expect_shown({"END"}, "END", "|");
  expect_shown({"\n\n"}, "a\nb\n\nc", "a\nb|");
}

TEST(StopStrings, WhatOnlyLooksLikeAStopIsShown) {
  expect_shown({"END"}, "E EN ENE EN", "E EN ENE EN");
  expect_shown({"aab"}, "aaaaab!", "aaa|");
  expect_shown({"abab", "abc"}, "ababc", "|");
}

TEST(StopStrings, TheOneThatIsCompleteFirstCounts) {
  expect_shown({"bc", "abcd"}, "xabcd", "xa|");
  expect_shown({"bcd", "abcd"}, "xabcd", "x|");  // both at once: the longer one
  expect_shown({"d", "zz"}, "abcdzz", "abc|");
}

TEST(StopStrings, NoMoreIsHeldBackThanMayBeAStop) {
  StopStrings filter({"<end>"});
  EXPECT_EQ(filter.push("text <"), "text ");
  EXPECT_EQ(filter.push("en"), "");
  EXPECT_EQ(filter.push("t <e"), "<ent ");
  EXPECT_EQ(filter.push("nd> more"), "");
  EXPECT_TRUE(filter.found());
  EXPECT_EQ(filter.push("and more"), "");
  EXPECT_EQ(filter.flush(), "");
}

TEST(StopStrings, CharactersOfSeveralBytesStayWhole) {
  expect_shown({"ende"}, "größe ende", "größe |");
  StopStrings filter({"ß!"});
  EXPECT_EQ(filter.push("größ"), "grö");
  EXPECT_EQ(filter.push("e"), "ße");
}

}  // namespace
}  // namespace tl
