// Tokenizers on vocabularies made for the purpose, where every id can be told by hand.
#include "tl/model/tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "model/tokenizer_utf8.h"
#include "model/tokenizer_vocabulary.h"
#include "model/vocabularies.h"

namespace tl::test {

namespace {

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr EncodeOptions kSpecial{.add_special = false, .parse_special = true};

// 259.. : ▁ a b ab ▁a bb abb
VocabularyFile pairs() {
  VocabularyFile file("llama");
  file.tokens(with_bytes({{"▁", -10},
                          {"a", -11},
                          {"b", -12},
                          {"ab", -2},
                          {"▁a", -3},
                          {"bb", -1},
                          {"abb", -9},
                          {"<|user|>", 0, kUserKind},
                          {"<|sys|>", 0, kControlKind}}));
  return file;
}
constexpr TokenId kSpace = kFirst, kA = kFirst + 1, kB = kFirst + 2, kAb = kFirst + 3,
                  kSpaceA = kFirst + 4, kBb = kFirst + 5, kUser = kFirst + 7, kSys = kFirst + 8;

// Byte pairs over a few letters; ids 0.. : a b c Ġ ab bc abc Ġa then what is given.
VocabularyFile bytes(const std::string& pre, const std::vector<Entry>& more = {}) {
  VocabularyFile file("gpt2");
  std::vector<Entry> entries{{"a"}, {"b"}, {"c"}, {"Ġ"}, {"ab"}, {"bc"}, {"abc"}, {"Ġa"}};
  entries.insert(entries.end(), more.begin(), more.end());
  file.tokens(entries).merges({"b c", "a b", "Ġ a"});
  if (!pre.empty()) file.add("pre", pre);
  return file;
}

void refused(const VocabularyFile& file, ErrorKind kind, const std::string& text) {
  expect_error(kind, text, [&] { file.tokenizer(); });
}

}  // namespace

// ---- SentencePiece

TEST(SentencePiece, TheHighestScoreMergesFirstAndThenTheLeftmost) {
  const Tokenizer tokenizer = pairs().tokenizer();
  EXPECT_EQ(tokenizer.encode("ab", kPlain), (Ids{kSpace, kAb}));  // ab at -2 before ▁a at -3
  EXPECT_EQ(tokenizer.encode("a", kPlain), (Ids{kSpaceA}));
  EXPECT_EQ(tokenizer.encode("abb", kPlain), (Ids{kSpaceA, kBb}));  // bb at -1 leaves a alone
  EXPECT_EQ(tokenizer.encode("bbb", kPlain),
            (Ids{kSpace, kBb, kB}));  // two bb are equal: the left one
}

TEST(SentencePiece, WhatIsNoTokenIsSpelledInBytes) {
  const Tokenizer tokenizer = pairs().tokenizer();
  const Ids ids = tokenizer.encode("é\n", kPlain);
  EXPECT_EQ(ids, (Ids{kSpace, byte_id(0xC3), byte_id(0xA9), byte_id('\n')}));
  EXPECT_EQ(tokenizer.decode(ids), "é\n");
  // Bytes that are no text are kept as they are.
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFF\xC3z", kPlain)), "a\xFF\xC3z");
}

TEST(SentencePiece, WithoutByteTokensTheUnknownTokenStandsForThem) {
  VocabularyFile file("llama");
  file.tokens(
      {{"<unk>", 0, kUnknownKind}, {"<s>", 0, kControlKind}, {"</s>", 0, kControlKind}, {"a"}});
  file.add("add_space_prefix", false);
  EXPECT_EQ(file.tokenizer().encode("aé"), (Ids{1, 3, 0, 0}));
}

TEST(SentencePiece, ASpaceGoesBeforeATextAndAfterASpecialToken) {
  const Tokenizer tokenizer = pairs().tokenizer();
  EXPECT_EQ(tokenizer.encode("a<|sys|>a", kSpecial), (Ids{kSpaceA, kSys, kSpaceA}));
  EXPECT_EQ(tokenizer.encode(" a", kPlain), (Ids{kSpace, kSpaceA}));
  EXPECT_EQ(tokenizer.encode("", kPlain), Ids{});
  EXPECT_EQ(tokenizer.encode(""), (Ids{1}));
  VocabularyFile file = pairs();
  file.add("add_space_prefix", false).add("add_bos_token", false).add("add_eos_token", true);
  const Tokenizer bare = file.tokenizer();
  EXPECT_EQ(bare.encode("a"), (Ids{kA, 2}));
  EXPECT_EQ(bare.decode(bare.encode(" a")), " a");
  EXPECT_FALSE(bare.adds_bos());
  EXPECT_TRUE(bare.adds_eos());
}

TEST(SentencePiece, DecodingDropsTheSpaceOfAStartAlone) {
  const Tokenizer tokenizer = pairs().tokenizer();
  const Ids ids = tokenizer.encode("a");
  EXPECT_EQ(ids, (Ids{1, kSpaceA}));
  EXPECT_EQ(tokenizer.decode(ids), "a");
  // A token that is shown is the start: the same as in llama.cpp and in the models' own tokenizers.
  EXPECT_EQ(tokenizer.decode(ids, {.special = true, .is_start = true}), "<s> a");
  TextStream stream(tokenizer, {.special = true, .is_start = true});
  EXPECT_EQ(stream.push(ids[0]), "<s>");
  EXPECT_EQ(stream.push(ids[1]), " a");
  EXPECT_EQ(tokenizer.decode(ids, {.special = false, .is_start = false}), " a");
}

TEST(SentencePiece, ALongWordIsNotQuadratic) {
  const Tokenizer tokenizer = pairs().tokenizer();
  std::string text;
  while (text.size() < 1'000'000) text += "ab";
  EXPECT_EQ(tokenizer.encode(text, kPlain).size(), 1 + text.size() / 2);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, kPlain)), text);
}

// ---- special tokens

TEST(SpecialTokens, ControlTokensAreReadOnlyWhenAsked) {
  const Tokenizer tokenizer = pairs().tokenizer();
  EXPECT_EQ(tokenizer.encode("<s>", kSpecial), (Ids{1}));
  EXPECT_EQ(tokenizer.encode("<unk>", kSpecial), (Ids{0}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("<s>", kPlain)), "<s>");
  EXPECT_GT(tokenizer.encode("<s>", kPlain).size(), 2U);
  EXPECT_EQ(tokenizer.encode("<|user|>", kPlain), (Ids{kUser}));  // always
  EXPECT_EQ(tokenizer.decode(Ids{kUser}), "<|user|>");
  EXPECT_EQ(tokenizer.decode(Ids{kSys}), "");
}

TEST(SpecialTokens, LongerOnesAreFoundFirst) {
  VocabularyFile file("llama");
  file.tokens(with_bytes({{"<<", 0, kUserKind},
                          {"<<<", 0, kUserKind},
                          {"<<<<<", 0, kUserKind},
                          {"<x", 0, kUserKind}}));
  file.add("add_space_prefix", false);
  const Tokenizer tokenizer = file.tokenizer();
  const TokenId two = kFirst, three = kFirst + 1, five = kFirst + 2, x = kFirst + 3;
  EXPECT_EQ(tokenizer.encode("<<<<", kPlain), (Ids{three, byte_id('<')}));
  EXPECT_EQ(tokenizer.encode("<<<<<<<<<<<<", kPlain), (Ids{five, five, two}));
  EXPECT_EQ(tokenizer.encode("<<<x", kPlain), (Ids{three, byte_id('x')}));  // not << and <x
  EXPECT_EQ(tokenizer.encode("<<x", kPlain),
            (Ids{two, byte_id('x')}));  // equal lengths: the lower id
  EXPECT_EQ(tokenizer.encode("<x<x", kPlain), (Ids{x, x}));
}

TEST(SpecialTokens, ManyOfThemAreNotQuadratic) {
  std::vector<Entry> runs;
  for (std::size_t length = 2; length < 32; ++length)
    runs.push_back({std::string(length, ' '), 0, kUserKind});
  VocabularyFile file("llama");
  file.tokens(with_bytes(runs)).add("add_space_prefix", false);
  const Tokenizer tokenizer = file.tokenizer();
  const std::string text(31 * 16'000 + 5, ' ');
  const Ids ids = tokenizer.encode(text, kPlain);
  EXPECT_EQ(ids.size(), 16'001U);
  EXPECT_EQ(tokenizer.decode(ids), text);
}

TEST(SpecialTokens, SomeModelsTakeTheWhiteSpaceAfterThem) {
  VocabularyFile file = pairs();
  file.add_full("general.name", "Phi-3 mini");
  const Tokenizer tokenizer = file.tokenizer();
  EXPECT_EQ(tokenizer.encode("<|sys|> \n a<|sys|>  ", kSpecial), (Ids{kSys, kSpaceA, kSys}));
  EXPECT_EQ(tokenizer.encode("<s> a", kSpecial), (Ids{1, kSpace, kSpaceA}));
  VocabularyFile masked("gpt2");
  masked.tokens({{"a"}, {"Ġ"}, {"<mask>", 0, kControlKind}})
      .merges({"Ġ a"})
      .add("pre", "jina-v2-de");
  EXPECT_EQ(masked.tokenizer().encode("a  <mask> a", kSpecial), (Ids{0, 2, 1, 0}));
}

TEST(SpecialTokens, APromptGetsItsFirstTokenOnce) {
  const Tokenizer tokenizer = pairs().tokenizer();
  EXPECT_EQ(tokenizer.encode_prompt("<s>a"), (Ids{1, kSpaceA}));
  EXPECT_EQ(tokenizer.encode_prompt("a</s>"), (Ids{1, kSpaceA, 2}));
  EXPECT_EQ(tokenizer.encode_prompt(""), (Ids{1}));
}

TEST(SpecialTokens, EndsAreKnownByTheirTexts) {
  VocabularyFile file = pairs();
  const Tokenizer plain = file.tokenizer();
  EXPECT_EQ(Ids(plain.end_tokens().begin(), plain.end_tokens().end()), (Ids{2}));
  const Tokenizer chat =
      bytes("gpt-2", {{"<|im_end|>"}, {"<|endoftext|>", 0, kControlKind}}).tokenizer();
  EXPECT_EQ(chat.eot(), 8);
  EXPECT_TRUE(chat.is_end(8) && chat.is_end(9) && !chat.is_end(0));
  EXPECT_TRUE(chat.is_special(8));  // whatever the file calls it
  const Tokenizer harmony = bytes("gpt-4o", {{"<|end|>", 0, kControlKind},
                                             {"<|return|>", 0, kControlKind},
                                             {"<|call|>", 0, kControlKind},
                                             {"<|channel|>", 0, kControlKind}})
                                .tokenizer();
  EXPECT_FALSE(harmony.is_end(8));
  EXPECT_TRUE(harmony.is_end(9) && harmony.is_end(10));
  EXPECT_EQ(harmony.decode(Ids{8, 11, 9}), "<|end|><|channel|>");
}

// ---- byte pairs

TEST(BytePairs, MergeByRankAndThenFromTheLeft) {
  const Tokenizer tokenizer = bytes("gpt-2").tokenizer();
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{0, 5}));  // b c is the first merge; a bc is none
  EXPECT_EQ(tokenizer.encode("ab a"), (Ids{4, 7}));
  EXPECT_EQ(tokenizer.encode("abab"), (Ids{4, 4}));
  EXPECT_EQ(tokenizer.decode(Ids{4, 7, 3, 5}), "ab a bc");
  EXPECT_EQ(tokenizer.text(3), "Ġ");
  EXPECT_EQ(tokenizer.piece(3), " ");
}

TEST(BytePairs, AWordThatIsATokenIsTakenWholeWhereTheRuleSaysSo) {
  VocabularyFile file = bytes("llama-bpe");
  file.add("bos_token_id", std::uint32_t{2});
  EXPECT_EQ(file.tokenizer().encode("abc"), (Ids{2, 6}));
  EXPECT_EQ(bytes("llama-bpe").tokenizer().bos(),
            std::nullopt);  // 11, the custom, is not in so small a vocabulary
}

TEST(BytePairs, BytesWithoutATokenAreLeftOutOrUnknown) {
  EXPECT_EQ(bytes("gpt-2").tokenizer().encode("axb"), (Ids{0, 1}));
  VocabularyFile file = bytes("gpt-2", {{"<unk>", 0, kUnknownKind}});
  file.add("unknown_token_id", std::uint32_t{8});
  EXPECT_EQ(file.tokenizer().encode("axéb"), (Ids{0, 8, 8, 8, 1}));
}

TEST(BytePairs, BytesThatAreNoTextAreSeenAsReplacementCharacters) {
  const Tokenizer tokenizer = bytes("gpt-2", {{"ï"}, {"¿"}, {"½"}}).tokenizer();
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFF\xE2\x82")),
            "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(BytePairs, MergesMayMakeWhatIsNoToken) {
  VocabularyFile file("gpt2");
  file.tokens({{"a"}, {"b"}, {"c"}, {"abc"}}).merges({"a b", "ab c"}).add("pre", "gpt-2");
  EXPECT_EQ(file.tokenizer().encode("abc"), (Ids{3}));
  EXPECT_EQ(file.tokenizer().encode("abb"), (Ids{0, 1, 1}));  // ab is no token: its bytes are
}

TEST(BytePairs, TextsOfGemmaAreNotSpelledInBytes) {
  VocabularyFile file("gemma4");
  file.tokens(with_bytes({{"▁"}, {"h"}, {"é"}, {"hé"}, {"▁hé"}, {"\n"}, {"\n\n"}}))
      .merges({"h é", "▁ hé"});
  file.add("bos_token_id", std::uint32_t{1});
  const Tokenizer tokenizer = file.tokenizer();
  EXPECT_EQ(tokenizer.encode("hé hé", kPlain), (Ids{kFirst + 3, kFirst + 4}));
  EXPECT_EQ(tokenizer.encode("\n\nx", kPlain), (Ids{kFirst + 6, byte_id('x')}));
  EXPECT_EQ(tokenizer.encode("h"), (Ids{1, kFirst + 1}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hé hé")), "hé hé");
}

TEST(BytePairs, AMissingNameOfThePreTokenizerIsAWarning) {
  const Tokenizer tokenizer = bytes("").tokenizer();
  ASSERT_EQ(tokenizer.warnings().size(), 1U);
  EXPECT_NE(tokenizer.warnings()[0].find("tokenizer.ggml.pre"), std::string::npos);
  EXPECT_EQ(tokenizer.pre(), "default");
}

TEST(BytePairs, EveryByteHasACharacterOfItsOwn) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::uint32_t character = tok::character_of_byte(static_cast<unsigned char>(byte));
    EXPECT_EQ(tok::byte_of_character(character), static_cast<unsigned char>(byte));
  }
  EXPECT_EQ(tok::character_of_byte(' '), 0x120U);   // Ġ
  EXPECT_EQ(tok::character_of_byte('\n'), 0x10AU);  // Ċ
  EXPECT_EQ(tok::byte_of_character(0x144), std::nullopt);
}

// ---- unigram

TEST(Unigram, TakesTheSpellingWithTheHighestSum) {
  VocabularyFile file("t5");
  file.tokens({{"<pad>", 0, kControlKind},
               {"</s>", 0, kControlKind},
               {"<unk>", 0, kUnknownKind},
               {"▁", -2},
               {"a", -3},
               {"b", -3},
               {"ab", -4},
               {"▁ab", -7},
               {"▁a", -4},
               {"QQ", 0, kUserKind}});
  file.add("add_space_prefix", true).add("remove_extra_whitespaces", true);
  const Tokenizer tokenizer = file.tokenizer();
  EXPECT_EQ(tokenizer.encode("ab"), (Ids{3, 6, 1}));  // -6 beats -7, whether whole or ▁a b
  EXPECT_EQ(tokenizer.encode("  a   a ", kPlain), (Ids{8, 8}));
  EXPECT_EQ(tokenizer.encode("axyzb", kPlain), (Ids{8, 2, 5}));  // unknown ones in a row are one
  EXPECT_EQ(tokenizer.encode("aQQ", kPlain), (Ids{8, 9}));
  EXPECT_EQ(tokenizer.encode("", kPlain), Ids{});
  EXPECT_EQ(tokenizer.encode("\xFF", kPlain), (Ids{3, 2}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab a")), "ab a");
}

TEST(Unigram, ADamagedMapIsAnError) {
  const auto with_map = [](const std::vector<std::uint8_t>& map) {
    VocabularyFile file("t5");
    file.tokens({{"<pad>"}, {"</s>"}, {"<unk>"}, {"a"}});
    file.add("precompiled_charsmap", GgufValue::array(std::span<const std::uint8_t>(map)));
    return file;
  };
  refused(with_map({1, 0}), ErrorKind::BadFile, "precompiled_charsmap is damaged: it has 2 bytes");
  refused(with_map({8, 0, 0, 0, 1, 2}), ErrorKind::BadFile, "precompiled_charsmap is damaged");
  // A node that leads out of the array.
  const Tokenizer tokenizer = with_map({4, 0, 0, 0, 0, 0xFF, 0, 0, 'x', 0}).tokenizer();
  expect_error(ErrorKind::BadFile, "it leads to entry", [&] { tokenizer.encode("a"); });
  EXPECT_EQ(with_map({}).tokenizer().encode("a", kPlain), (Ids{3}));
}

// ---- what files may have wrong

TEST(Tokenizers, RefuseVocabulariesTheyCannotUse) {
  refused(VocabularyFile("wordpiece"), ErrorKind::Unsupported,
          "the vocabulary is of the kind 'wordpiece' (tokenizer.ggml.model); there are llama, "
          "gpt2, gemma4 and t5");
  refused(VocabularyFile("llama"), ErrorKind::BadFile, "there is no key tokenizer.ggml.tokens");
  refused(bytes("quite-new"), ErrorKind::Unsupported, "the pre-tokenizer 'quite-new'");
  VocabularyFile twice("llama");
  twice.tokens({{"<unk>"}, {"a"}, {"b"}, {"a"}});
  refused(twice, ErrorKind::BadFile, "tokenizer.ggml.tokens: 1 and 3 are both 'a'");
  VocabularyFile none("llama");
  none.tokens({});
  refused(none, ErrorKind::BadFile, "tokenizer.ggml.tokens is empty");
  VocabularyFile no_merges("gpt2");
  no_merges.tokens({{"a"}}).add("pre", "gpt-2");
  refused(no_merges, ErrorKind::BadFile, "needs the key tokenizer.ggml.merges");
  VocabularyFile bad_merge("gpt2");
  bad_merge.tokens({{"a"}}).merges({"a a", "aa"}).add("pre", "gpt-2");
  refused(bad_merge, ErrorKind::BadFile, "tokenizer.ggml.merges: entry 1 is 'aa'");
  VocabularyFile few_scores("llama");
  const std::vector<std::string> texts{"a", "b"};
  const std::vector<float> scores{1};
  few_scores.add("tokens", GgufValue::array(std::span<const std::string>(texts)));
  few_scores.add("scores", GgufValue::array(std::span<const float>(scores)));
  refused(few_scores, ErrorKind::BadFile, "tokenizer.ggml.scores has 1 entries for 2 tokens");
  VocabularyFile no_number("llama");
  no_number.tokens({{"a", 0}, {"b", std::numeric_limits<float>::quiet_NaN()}});
  refused(no_number, ErrorKind::BadFile, "the score of token 1 is no number");
  VocabularyFile not_texts("llama");
  not_texts.add("tokens", std::uint32_t{3});
  refused(not_texts, ErrorKind::BadFile, "tokenizer.ggml.tokens");
  VocabularyFile empty_file("llama");
  expect_error(ErrorKind::BadFile, "there is no key tokenizer.ggml.model", [] {
    Raw raw;
    raw.start(0, 0);
    Tokenizer::from_gguf(raw.open());
  });
}

TEST(Tokenizers, OddFilesStillWork) {
  VocabularyFile file("llama");
  file.tokens({{"", 0}, {"a", 0, 77}, {"b", 0, -4}});
  file.add("bos_token_id", std::uint32_t{99});
  const Tokenizer tokenizer = file.tokenizer();
  EXPECT_EQ(tokenizer.text(0), "[EMPTY_0]");
  EXPECT_EQ(tokenizer.kind(1), TokenKind::Undefined);
  ASSERT_EQ(tokenizer.warnings().size(), 1U);
  EXPECT_NE(tokenizer.warnings()[0].find("tokenizer.ggml.bos_token_id is 99"), std::string::npos);
  EXPECT_EQ(tokenizer.bos(), 1);  // the custom
  expect_error(ErrorKind::InvalidIndex, "there is no token 3; the vocabulary has 3",
               [&] { tokenizer.decode(Ids{3}); });
  expect_error(ErrorKind::InvalidIndex, "there is no token -1", [&] { tokenizer.piece(-1); });
}

TEST(Tokenizers, AreSafeFromSeveralThreads) {
  const Tokenizer tokenizer = pairs().tokenizer();
  const Tokenizer other = bytes("gpt-2").tokenizer();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        EXPECT_EQ(tokenizer.encode("abb", kPlain).size(), 2U);
        EXPECT_EQ(other.encode("ab a").size(), 2U);
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

// ---- streams

TEST(TextStreams, GiveCharactersWhole) {
  const Tokenizer tokenizer = pairs().tokenizer();
  TextStream stream(tokenizer);
  EXPECT_EQ(stream.push(kSpaceA), " a");
  for (const char byte : {'\xF0', '\x9F', '\x98'}) {
    EXPECT_EQ(stream.push(byte_id(static_cast<unsigned char>(byte))), "");
  }
  EXPECT_EQ(stream.push(byte_id(0x80)), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.push(1), "");  // a control token
  EXPECT_EQ(stream.flush(), "");
}

TEST(TextStreams, BytesThatCannotBeTextAreReplaced) {
  const Tokenizer tokenizer = pairs().tokenizer();
  TextStream stream(tokenizer);
  EXPECT_EQ(stream.push(byte_id(0xFF)), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.push(byte_id(0xE2)), "");
  EXPECT_EQ(stream.push(kA),
            "\xEF\xBF\xBD"
            "a");  // it never came
  EXPECT_EQ(stream.push(byte_id(0xE2)), "");
  EXPECT_EQ(stream.push(byte_id(0x82)), "");
  EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(stream.flush(), "");
}

TEST(TextStreams, TogetherGiveWhatDecodingGives) {
  const Tokenizer tokenizer = pairs().tokenizer();
  const std::string text = "a é漢😀\xC3 ab\xF0\x9F x";
  const Ids ids = tokenizer.encode(text, kPlain);
  TextStream stream(tokenizer, {.special = false, .is_start = true});
  std::string out;
  for (const TokenId id : ids) {
    const std::string part = stream.push(id);
    EXPECT_EQ(first_invalid_utf8(part), part.size());
    out += part;
  }
  EXPECT_EQ(out + stream.flush(), tok::valid_utf8(text));
}

TEST(Utf8, KnowsWhichTailsMayStillBecomeCharacters) {
  for (const std::string_view open :
       {"\xC3", "\xE2", "\xE2\x82", "\xF0", "\xF0\x9F", "\xF0\x9F\x98", "\xED\x9F", "\xF4\x8F"}) {
    EXPECT_EQ(tok::unfinished_tail(join("a", open)), open.size());
  }
  for (const std::string_view closed : {"", "a", "\x80", "\xC0", "\xF5", "\xED\xA0", "\xF4\x90",
                                        "\xE0\x80", "é", "😀", "\xE2\x82\xAC"}) {
    EXPECT_EQ(tok::unfinished_tail(join("a", closed)), 0U) << closed.size();
  }
}

}  // namespace tl::test
