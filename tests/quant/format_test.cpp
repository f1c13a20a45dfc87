#include "tl/quant/format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "support/on_every_device.h"

namespace tl {
namespace {

using test::expect_error;

TEST(QFormat, CodesAndNamesAreThoseOfTheFiles) {
  EXPECT_EQ(q_formats().size(), 35u);
  std::set<std::string_view> names;
  for (const QFormat& each : q_formats()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_EQ(q_type(static_cast<std::uint32_t>(each.type)), each.type) << each.name;
    EXPECT_EQ(parse_q_type(each.name), each.type);
    EXPECT_EQ(name(each.type), each.name);
  }
  EXPECT_EQ(static_cast<int>(parse_q_type("q4_k")), 12);
  EXPECT_EQ(static_cast<int>(parse_q_type("MXFP4")), 39);
}

TEST(QFormat, RetiredAndUnknownCodesHaveNoType) {
  for (const std::uint32_t code : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 255u, 256u, ~0u}) {
    EXPECT_FALSE(q_type(code)) << code;
  }
  expect_error(ErrorKind::BadArgument, "there is no type 'Q9'", [] { parse_q_type("Q9"); });
  expect_error(ErrorKind::BadArgument, "no type has the code 31",
               [] { format_of(static_cast<QType>(31)); });
}

TEST(QFormat, BitsPerWeightAreThePublishedOnes) {
  const auto bits = [](QType type) {
    const QFormat& format = format_of(type);
    return 8.0 * format.bytes / format.elements;
  };
  EXPECT_EQ(bits(QType::Q4_0), 4.5);
  EXPECT_EQ(bits(QType::Q4_K), 4.5);
  EXPECT_EQ(bits(QType::Q6_K), 6.5625);
  EXPECT_EQ(bits(QType::IQ1_S), 1.5625);
  EXPECT_EQ(bits(QType::TQ1_0), 1.6875);
  EXPECT_EQ(bits(QType::NVFP4), 4.5);
}

TEST(QFormat, PlainTypesAreDtypes) {
  for (const DType dtype : kDTypes) {
    if (const auto type = q_type_of(dtype)) {
      EXPECT_EQ(plain_dtype(*type), dtype);
      EXPECT_TRUE(is_plain(*type));
      EXPECT_EQ(format_of(*type).bytes, size_of(dtype));
    }
  }
  EXPECT_EQ(q_type_of(DType::BF16), QType::BF16);
  EXPECT_FALSE(q_type_of(DType::U8));
  EXPECT_FALSE(plain_dtype(QType::I8));
  EXPECT_FALSE(plain_dtype(QType::Q8_0));
}

TEST(QFormat, BytesAreThoseOfWholeBlocks) {
  EXPECT_EQ(q_bytes("test", QType::Q4_K, 3, 512), 3u * 2 * 144);
  EXPECT_EQ(q_bytes("test", QType::F32, 1, 7), 28u);
  EXPECT_EQ(q_bytes("test", QType::Q8_0, 0, 32), 0u);
  expect_error(ErrorKind::BadArgument, "rows of 100 are not a whole number",
               [] { q_bytes("test", QType::Q4_K, 3, 100); });
  expect_error(ErrorKind::BadArgument, "more bytes than there can be",
               [] { q_bytes("test", QType::F64, std::numeric_limits<std::int64_t>::max(), 8); });
  expect_error(ErrorKind::BadArgument, "below zero", [] { q_bytes("test", QType::F32, -1, 8); });
}

}  // namespace
}  // namespace tl
