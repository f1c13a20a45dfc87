#include "model/sentencepiece.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "model/saved_models.h"

namespace tl {
namespace {

using namespace test;
using saved::read_sentencepiece;
using saved::SentencePieceModel;
using saved::TokenType;

SentencePieceModel read(const std::string& bytes) {
  return read_sentencepiece("m.model", std::as_bytes(std::span(bytes)));
}

void refuse(const std::string& bytes, const std::string& text) {
  expect_error(ErrorKind::BadFile, "m.model: byte " + text, [&] { read(bytes); });
}

TEST(SentencePiece, PiecesHaveTextScoreAndType) {
  const std::string bytes = piece_field("<unk>", 0, 2) + piece_field("<s>", -1.5f, 3) +
                            piece_field("\u2581the", -7, 1) + piece_field("<0x0A>", 0, 6);
  const SentencePieceModel model = read(bytes);
  ASSERT_EQ(model.pieces.size(), 4u);
  EXPECT_EQ(model.pieces[0].type, TokenType::Unknown);
  EXPECT_EQ(model.pieces[1].text, "<s>");
  EXPECT_EQ(model.pieces[1].score, -1.5f);
  EXPECT_EQ(model.pieces[2].text, "\u2581the");
  EXPECT_EQ(model.pieces[3].type, TokenType::Byte);
}

TEST(SentencePiece, WhatIsLeftOutHasTheValueOfTheFormat) {
  const std::string bytes = bytes_field(1, bytes_field(1, "a"));
  const SentencePieceModel model = read(bytes);
  EXPECT_EQ(model.pieces[0].score, 0);
  EXPECT_EQ(model.pieces[0].type, TokenType::Normal);
  EXPECT_EQ(model.kind, SentencePieceModel::Kind::Unigram);
  EXPECT_EQ(model.unknown_id, 0);
  EXPECT_EQ(model.begin_id, 1);
  EXPECT_EQ(model.end_id, 2);
  EXPECT_EQ(model.padding_id, -1);
  EXPECT_TRUE(model.add_dummy_prefix);
  EXPECT_TRUE(model.remove_extra_whitespaces);
}

TEST(SentencePiece, FlagsOfTrainingAndNormalizingAreRead) {
  const std::uint64_t minus_one = std::numeric_limits<std::uint64_t>::max();
  const std::string bytes =
      piece_field("a", 0, 1) +
      bytes_field(2, number_field(3, 2) + number_field(40, 3) + number_field(41, 4) +
                         number_field(42, minus_one) + number_field(43, 0)) +
      bytes_field(3, bytes_field(1, "nfkc") + number_field(3, 0) + number_field(4, 0));
  const SentencePieceModel model = read(bytes);
  EXPECT_EQ(model.kind, SentencePieceModel::Kind::Bpe);
  EXPECT_EQ(model.unknown_id, 3);
  EXPECT_EQ(model.begin_id, 4);
  EXPECT_EQ(model.end_id, -1);
  EXPECT_EQ(model.padding_id, 0);
  EXPECT_FALSE(model.add_dummy_prefix);
  EXPECT_FALSE(model.remove_extra_whitespaces);
}

TEST(SentencePiece, UnknownFieldsOfEveryWireTypeArePassedOver) {
  const std::string bytes = number_field(900, 7) + varint(901 * 8 + 1) + "12345678" +
                            bytes_field(902, "text") + float_field(903, 1) +
                            piece_field("a", 1, 1) + bytes_field(5, "denormalizer");
  EXPECT_EQ(read(bytes).pieces.size(), 1u);
}

TEST(SentencePiece, EveryCutOfAFileIsReadOrRefused) {
  const std::string bytes = piece_field("<unk>", 0, 2) + piece_field("abc", -1, 1) + usual_specs();
  std::size_t refusals = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    try {
      EXPECT_LE(read(bytes.substr(0, size)).pieces.size(), 2u);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::BadFile);
      ++refusals;
    }
  }
  EXPECT_GT(refusals, bytes.size() / 2);
}

TEST(SentencePiece, BadBytesAreRefusedWithTheirPlace) {
  const std::string good = piece_field("a", 0, 1);
  const std::string at = std::to_string(good.size());
  refuse("", "0: there is no piece");
  refuse(good + "\x80", at + ": a number is cut off");
  refuse(good + std::string(10, '\xff') + "\x01", at + ": a number has more than 64 bits");
  refuse(good + varint(1) + "a", at + ": no field has the tag 1");
  refuse(good + varint(0), at + ": no field has the tag 0");
  refuse(good + varint(std::uint64_t{1} << 33), at + ": no field has the tag");
  refuse(good + varint(7 * 8 + 3), at + ": field 7 has the wire type 3");
  refuse(good + varint(7 * 8 + 2) + varint(5) + "abc",
         at + ": field 7 has 5 bytes, and 3 are left");
  refuse(good + varint(7 * 8 + 1) + "abc", at + ": field 7 has 8 bytes, and 3 are left");
  refuse(good + varint(7 * 8 + 2) + varint(~0ull), at + ": field 7 has 18446744073709551615 bytes");
  refuse(good + number_field(1, 5), at + ": the list of pieces has the wire type 0, not 2");
}

TEST(SentencePiece, BadPiecesAreRefused) {
  refuse(bytes_field(1, float_field(2, 1)), "0: a piece has no text");
  refuse(bytes_field(1, bytes_field(1, "")), "0: a piece has no text");
  refuse(bytes_field(1, bytes_field(1, "ab\xff")), "6: the text of a piece is not UTF-8");
  refuse(bytes_field(1, number_field(1, 5)), "2: the text of a piece has the wire type 0, not 2");
  refuse(bytes_field(1, bytes_field(1, "a") + number_field(2, 5)),
         "5: the score of a piece has the wire type 0, not 5");
  refuse(piece_field("a", std::numeric_limits<float>::infinity(), 1),
         "5: the score of a piece is inf");
  refuse(piece_field("a", 0, 7), "10: the type of a piece is 7; 1 to 6 are known");
  refuse(piece_field("a", 0, 0), "10: the type of a piece is 0");
  refuse(piece_field("a", 0, 1) + bytes_field(2, number_field(3, 9)), "14: the kind of model is 9");
  refuse(piece_field("a", 0, 1) + bytes_field(2, number_field(41, std::uint64_t{1} << 40)),
         "14: the id of the beginning is 1099511627776");
  // A piece whose length reaches into the next one is cut off there, not read on.
  refuse(bytes_field(1, varint(8 + 2) + varint(4) + "abc") + piece_field("b", 0, 1),
         "2: field 1 has 4 bytes, and 3 are left");
}

}  // namespace
}  // namespace tl
