#include "tl/base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tl {
namespace {

TEST(FormatBytes, ThreeDigitsAndBinaryUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(12 * 1024 * 1024), "12.0 MiB");
  EXPECT_EQ(format_bytes(std::uint64_t{1} << 30), "1.00 GiB");
  EXPECT_EQ(format_bytes(std::uint64_t{139} << 30), "139 GiB");
}

TEST(FormatBytes, RoundingUpMovesToTheNextUnit) {
  EXPECT_EQ(format_bytes((std::uint64_t{1} << 20) - 1), "1.00 MiB");  // not "1024 KiB"
  EXPECT_EQ(format_bytes(10235), "10.0 KiB");                         // not "10.00 KiB"
}

TEST(FormatBytes, TheLargestNumberFits) {
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
}

TEST(FormatDuration, PicksTheUnit) {
  EXPECT_EQ(format_duration(0), "0.00 ns");
  EXPECT_EQ(format_duration(950e-9), "950 ns");
  EXPECT_EQ(format_duration(12.3e-6), "12.3 us");
  EXPECT_EQ(format_duration(4.56e-3), "4.56 ms");
  EXPECT_EQ(format_duration(1.2), "1.20 s");
}

TEST(FormatDuration, RoundingUpMovesToTheNextUnit) {
  EXPECT_EQ(format_duration(999.9e-9), "1.00 us");
  EXPECT_EQ(format_duration(999.9e-6), "1.00 ms");
  EXPECT_EQ(format_duration(999.9e-3), "1.00 s");
}

TEST(FormatCount, GroupsByThree) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(JoinList, PutsTheSeparatorBetween) {
  EXPECT_EQ(join_list({}, ", "), "");
  EXPECT_EQ(join_list(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(join_list(std::vector<std::string>{"a", "b", "c"}, ", "), "a, b, c");
}

TEST(JoinList, EmptyItemsKeepTheirPlace) {
  EXPECT_EQ(join_list(std::vector<std::string>{"", "b"}, ","), ",b");
}

TEST(Environment, UnsetAndEmptyAreEmpty) {
  ::unsetenv("TL_TEXT_TEST");
  EXPECT_EQ(environment("TL_TEXT_TEST"), "");
  ::setenv("TL_TEXT_TEST", "", 1);
  EXPECT_EQ(environment("TL_TEXT_TEST"), "");
  ::setenv("TL_TEXT_TEST", "yes", 1);
  EXPECT_EQ(environment("TL_TEXT_TEST"), "yes");
  ::unsetenv("TL_TEXT_TEST");
}

TEST(Utf8, TheFirstInvalidByteIsFound) {
  const auto good = [](std::string_view text) {
    EXPECT_EQ(first_invalid_utf8(text), text.size()) << text;
  };
  const auto bad = [](std::size_t place, std::string_view text) {
    EXPECT_EQ(first_invalid_utf8(text), place);
    EXPECT_EQ(first_invalid_utf8("abc" + std::string(text)), place + 3);
    EXPECT_EQ(first_invalid_utf8(std::string(text) + "abc"), place);
  };
  good("");
  good(std::string_view("a\0b", 3));
  good(
      "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f"
      "\xbf\xbf");
  bad(0, "\x80");              // a byte in the middle of nothing
  bad(0, "\xc0\xaf");          // overlong
  bad(0, "\xc1\xbf");          // overlong
  bad(0, "\xe0\x9f\xbf");      // overlong
  bad(0, "\xf0\x8f\xbf\xbf");  // overlong
  bad(0, "\xed\xa0\x80");      // a surrogate
  bad(0, "\xf4\x90\x80\x80");  // above U+10FFFF
  bad(0, "\xf5\x80\x80\x80");
  bad(0, "\xff");
  bad(0, "\xc3");  // cut off
  bad(0, "\xe2\x82");
  bad(0, "\xf0\x9f\x98");
  bad(2, "\xc3\xa9\xe2\x28\xa1");
}

}  // namespace
}  // namespace tl
