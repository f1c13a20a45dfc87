// GGUF files: what is written comes back bit for bit, and files of others are read.
#include "tl/model/gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "model/gguf_files.h"
#include "tl/model/gguf_writer.h"

namespace tl {
namespace {

using namespace test;

std::vector<std::pair<std::string, GgufValue>> every_value() {
  const std::array<std::int16_t, 3> shorts{-5, 0, 32767};
  const std::array<bool, 3> bools{true, false, true};
  const std::array<float, 2> floats{1.5f, std::nanf("")};
  const std::vector<std::string> texts{"", "one", "\xff\xfe not text", std::string(300, 'x')};
  const GgufValue numbers = GgufValue::array(std::span<const std::int16_t>(shorts));
  const GgufValue words = GgufValue::array(texts);
  const GgufValue none = GgufValue::array(GgufType::F32, {});
  return {{"general.architecture", "llama"},
          {"u8", std::uint8_t{255}},
          {"i8", std::int8_t{-128}},
          {"u16", std::uint16_t{65535}},
          {"i16", std::int16_t{-32768}},
          {"u32", ~0u},
          {"i32", std::numeric_limits<std::int32_t>::min()},
          {"u64", ~std::uint64_t{0}},
          {"i64", std::numeric_limits<std::int64_t>::min()},
          {"f32", -0.0f},
          {"f64", std::nan("1")},
          {"false", false},
          {"true", true},
          {"text", "\xc3\xa9\n\"quoted\""},
          {"no text", ""},
          {"bytes", "\x80\xff"},
          {"numbers", numbers},
          {"bools", GgufValue::array(std::span<const bool>(bools))},
          {"floats", GgufValue::array(std::span<const float>(floats))},
          {"texts", words},
          {"no numbers", none},
          {"no arrays", GgufValue::array(GgufType::Array, {})},
          {"nested", GgufValue::array(GgufType::Array, std::vector{numbers, none, words})},
          {"deeper",
           GgufValue::array(GgufType::Array, std::vector{GgufValue::array(
                                                 GgufType::Array, std::vector{words, numbers})})}};
}

TEST(Gguf, EveryValueAndTensorTypeComesBackBitForBit) {
  const Folder folder;
  for (const std::uint32_t alignment : {8u, 32u, 64u, 4096u}) {
    GgufWriter writer({.alignment = alignment});
    for (const auto& [key, value] : every_value()) writer.add(key, value);
    std::vector<std::vector<std::byte>> data;
    for (const QFormat& format : q_formats()) {
      const std::size_t bytes = std::size_t{6} * format.bytes;
      data.push_back(pattern(bytes, static_cast<unsigned>(data.size())));
    }
    std::size_t next = 0;
    for (const QFormat& format : q_formats()) {
      writer.add_tensor(join("blk.", format.name), {3, 1, 2 * format.elements}, format.type,
                        data[next++]);
    }
    const std::string path = folder.file("a.gguf");
    EXPECT_EQ(writer.write(path), std::vector{path});
    EXPECT_EQ(folder.count(), 1u);

    const GgufFile file = GgufFile::open(path);
    EXPECT_EQ(file.version(), 3u);
    EXPECT_EQ(file.alignment(), alignment);
    EXPECT_EQ(file.architecture(), "llama");
    const auto expected = every_value();
    // The alignment is a key of its own where it is not the usual one.
    ASSERT_EQ(file.metadata().size(), expected.size() + (alignment == 32 ? 0 : 1));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(file.metadata()[i].key, expected[i].first);
      EXPECT_EQ(file.metadata()[i].value, expected[i].second) << expected[i].first;
      EXPECT_EQ(file.value(expected[i].first).type(), expected[i].second.type());
    }
    ASSERT_EQ(file.tensors().size(), q_formats().size());
    for (std::size_t i = 0; i < data.size(); ++i) {
      const GgufTensorInfo& info = file.tensors()[i];
      const QFormat& format = q_formats()[i];
      EXPECT_EQ(info.name, join("blk.", format.name));
      EXPECT_EQ(info.shape, (Shape{3, 1, 2 * format.elements}));
      EXPECT_EQ(info.known_type(), format.type);
      EXPECT_EQ(info.offset % alignment, 0u);
      EXPECT_EQ(info.size_bytes(), data[i].size());
      EXPECT_EQ(file.find(info.name), &info);
      const auto bytes = file.bytes(info);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), data[i].begin(), data[i].end()));
    }
    EXPECT_EQ(file.file_bytes(), fs::file_size(path));
  }
}

TEST(Gguf, ValuesOfAFileCanBeWrittenAgain) {
  const Folder folder;
  GgufWriter writer;
  for (const auto& [key, value] : every_value()) writer.add(key, value);
  writer.write(folder.file("a.gguf"));
  const GgufFile a = GgufFile::open(folder.file("a.gguf"));
  GgufWriter again;
  for (const GgufEntry& entry : a.metadata()) again.add(entry.key, entry.value);
  again.write(folder.file("b.gguf"));
  EXPECT_EQ(contents(folder.file("a.gguf")), contents(folder.file("b.gguf")));
}

TEST(Gguf, ShapesAreOutermostFirstAndMayHaveAnyRank) {
  const Raw raw = Raw()
                      .start(3, 0)
                      .tensor("scalar", {}, 0, 0)
                      .tensor("matrix", {2, 3}, 0, 32)
                      .tensor("eight", {1, 2, 1, 1, 1, 1, 1, 3}, 24, 64)
                      .pad()
                      .data(70);
  const GgufFile file = raw.open();
  EXPECT_EQ(file.tensor("scalar").shape, Shape{});
  EXPECT_EQ(file.tensor("scalar").size_bytes(), 4u);
  EXPECT_EQ(file.tensor("matrix").shape, (Shape{3, 2}));
  EXPECT_EQ(file.tensor("eight").shape, (Shape{3, 1, 1, 1, 1, 1, 2, 1}));
  EXPECT_EQ(file.parameters(), 13u);
  EXPECT_EQ(file.tensor_bytes(), 34u);
  EXPECT_EQ(std::to_integer<int>(file.bytes(file.tensor("eight"))[0]), 64);
}

TEST(Gguf, NothingIsAFileToo) {
  const Folder folder;
  const std::string path = folder.file("empty.gguf");
  GgufWriter().write(path);
  const GgufFile file = GgufFile::open(path);
  EXPECT_TRUE(file.tensors().empty());
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_EQ(file.parameters(), 0u);
  expect_error(ErrorKind::BadFile, "has no key 'general.architecture'",
               [&] { file.architecture(); });
  // Without padding, as there is nothing to align; tensors of no bytes are there all the same.
  const Raw unpadded = Raw().start(2, 0).tensor("a", {0, 5}, 0, 0).tensor("b", {3, 0}, 1, 0);
  const GgufFile bare = unpadded.open();
  EXPECT_EQ(bare.tensor("a").shape, (Shape{5, 0}));
  EXPECT_EQ(bare.tensor("a").size_bytes(), 0u);
  EXPECT_TRUE(bare.bytes(bare.tensor("b")).empty());
}

TEST(Gguf, VersionsOneAndTwoAreRead) {
  for (const std::uint32_t version : {1u, 2u, 3u}) {
    Raw raw(version);
    raw.start(1, 4);
    raw.key("general.name", GgufType::String).string("old");
    raw.key("words", GgufType::Array).u32(8).length(2).string("a").string("bc");
    raw.key("nested", GgufType::Array).u32(9).length(2);
    raw.u32(8).length(1).string("deep").u32(4).length(2).u32(7).u32(8);
    raw.key("general.alignment", GgufType::U32).u32(64);
    raw.tensor("t", {4, 2}, 0, 64).pad(64).data(96);
    const GgufFile file = raw.open();
    EXPECT_EQ(file.version(), version);
    EXPECT_EQ(file.alignment(), 64u);
    EXPECT_EQ(file.get<std::string>("general.name"), "old");
    EXPECT_EQ(file.value("words").to_vector<std::string_view>(),
              (std::vector<std::string_view>{"a", "bc"}));
    const auto nested = file.value("nested").items();
    ASSERT_EQ(nested.size(), 2u);
    EXPECT_EQ(nested[0].to_vector<std::string>(), std::vector<std::string>{"deep"});
    EXPECT_EQ(nested[1].to_vector<std::uint32_t>(), (std::vector<std::uint32_t>{7, 8}));
    EXPECT_EQ(file.tensor("t").shape, (Shape{2, 4}));
    EXPECT_EQ(std::to_integer<int>(file.bytes(file.tensor("t"))[0]), 64);
    // Lengths of 32 bits become lengths of 64 when the value is written again.
    GgufWriter writer;
    for (const GgufEntry& entry : file.metadata()) writer.add(entry.key, entry.value);
    const Folder folder;
    writer.write(folder.file("a.gguf"));
    const GgufFile again = GgufFile::open(folder.file("a.gguf"));
    EXPECT_EQ(again.alignment(), 64u);
    for (const GgufEntry& entry : file.metadata()) {
      EXPECT_EQ(again.value(entry.key), entry.value) << entry.key;
    }
  }
}

TEST(Gguf, TheAlignmentMayBeOfAnyIntegerTypeAndOne) {
  EXPECT_EQ(Raw().start(0, 1).key("general.alignment", GgufType::U8).raw("\x10").open().alignment(),
            16u);
  EXPECT_EQ(Raw().start(0, 1).key("general.alignment", GgufType::I64).u64(1024).open().alignment(),
            1024u);
  const Raw packed = Raw()
                         .start(2, 1)
                         .key("general.alignment", GgufType::U32)
                         .u32(1)
                         .tensor("a", {3}, 24, 0)
                         .tensor("b", {1}, 0, 3)
                         .data(7);
  EXPECT_EQ(std::to_integer<int>(packed.open().bytes(packed.open().tensor("b"))[0]), 3);
}

TEST(Gguf, TypesThatAreNotKnownAreListedAndOnlyTheirBytesAreRefused) {
  for (const std::uint32_t code : {4u, 5u, 31u, 38u, 43u, ~0u}) {
    const Raw raw =
        Raw().start(2, 0).tensor("old", {32, 7}, code, 0).tensor("good", {8}, 0, 32).pad().data(64);
    const GgufFile file = raw.open();
    const GgufTensorInfo& old = file.tensor("old");
    EXPECT_EQ(old.code, code);
    EXPECT_EQ(old.type, std::nullopt);
    EXPECT_EQ(old.bytes, std::nullopt);
    EXPECT_EQ(old.shape, (Shape{7, 32}));
    EXPECT_EQ(file.bytes(file.tensor("good")).size(), 32u);
    EXPECT_EQ(file.tensor_bytes(), 32u);
    const std::string text = join("gguf: tensor 'old' has the type code ", code, ",");
    expect_error(ErrorKind::Unsupported, text, [&] { file.bytes(old); });
    expect_error(ErrorKind::Unsupported, text, [&] { old.size_bytes(); });
    expect_error(ErrorKind::Unsupported, text, [&] { old.known_type(); });
  }
}

TEST(Gguf, AVocabularyIsReadInOnePassAndShownInPlace) {
  const Folder folder;
  constexpr std::size_t kTokens = 150'000;
  std::vector<std::string> tokens;
  std::vector<float> scores;
  for (std::size_t i = 0; i < kTokens; ++i) {
    tokens.push_back(join("token ", i));
    scores.push_back(static_cast<float>(i));
  }
  GgufWriter writer;
  writer.add("tokenizer.ggml.tokens", GgufValue::array(tokens));
  writer.add("tokenizer.ggml.scores", GgufValue::array(std::span<const float>(scores)));
  writer.write(folder.file("a.gguf"));
  const GgufFile file = GgufFile::open(folder.file("a.gguf"));
  const auto views = file.value("tokenizer.ggml.tokens").to_vector<std::string_view>();
  ASSERT_EQ(views.size(), kTokens);
  EXPECT_TRUE(std::equal(views.begin(), views.end(), tokens.begin()));
  EXPECT_EQ(file.value("tokenizer.ggml.tokens").to_vector<std::string_view>()[7].data(),
            views[7].data());
  EXPECT_EQ(file.value("tokenizer.ggml.scores").to_vector<float>(), scores);
  EXPECT_EQ(file.value("tokenizer.ggml.tokens").items(2).size(), 2u);
}

TEST(GgufModels, FilesOfOthersAreRead) {
  const fs::path folder = data_folder();
  if (folder.empty()) GTEST_SKIP() << "there is no ../shared/data/gguf";
  struct Model {
    const char* name;
    QType matrices, output;
  };
  for (const Model& model :
       {Model{"f32", QType::F32, QType::F32}, Model{"f16", QType::F16, QType::F16},
        Model{"q8_0", QType::Q8_0, QType::Q8_0}, Model{"q4_0", QType::Q4_0, QType::Q6_K},
        Model{"q4_k_m", QType::Q4_K, QType::Q6_K}, Model{"q6_k", QType::Q6_K, QType::Q6_K}}) {
    SCOPED_TRACE(model.name);
    const std::string path = (folder / join("tiny-llama-", model.name, ".gguf")).string();
    const GgufFile file = GgufFile::open(path);
    EXPECT_EQ(file.architecture(), "llama");
    EXPECT_EQ(file.get<std::uint64_t>("llama.block_count"), 2u);
    EXPECT_EQ(file.get<std::uint32_t>("llama.embedding_length"), 256u);
    EXPECT_EQ(file.get<std::int32_t>("llama.feed_forward_length"), 512);
    EXPECT_EQ(file.get<std::uint16_t>("llama.attention.head_count"), 8);
    EXPECT_EQ(file.get<std::uint8_t>("llama.attention.head_count_kv"), 2);
    EXPECT_EQ(file.get<std::uint64_t>("llama.context_length"), 2048u);
    EXPECT_EQ(file.get<double>("llama.rope.freq_base"), 10000);
    EXPECT_EQ(file.get<float>("llama.attention.layer_norm_rms_epsilon"), 1e-5f);
    const auto tokens = file.value("tokenizer.ggml.tokens").to_vector<std::string_view>();
    ASSERT_EQ(tokens.size(), 512u);
    EXPECT_EQ(tokens[0], "<unk>");
    EXPECT_EQ(tokens[1], "<s>");
    EXPECT_EQ(tokens[3], "<0x00>");
    EXPECT_EQ(file.value("tokenizer.ggml.scores").to_vector<float>().size(), 512u);
    EXPECT_EQ(file.value("tokenizer.ggml.token_type").count(), 512u);

    EXPECT_EQ(file.tensors().size(), 21u);
    EXPECT_EQ(file.tensor("token_embd.weight").shape, (Shape{512, 256}));
    EXPECT_EQ(file.tensor("blk.0.attn_k.weight").shape, (Shape{64, 256}));
    EXPECT_EQ(file.tensor("blk.1.ffn_down.weight").shape, (Shape{256, 512}));
    EXPECT_EQ(file.tensor("blk.0.attn_q.weight").known_type(), model.matrices);
    EXPECT_EQ(file.tensor("output.weight").known_type(), model.output);
    EXPECT_EQ(file.tensor("output_norm.weight").known_type(), QType::F32);
    std::uint64_t end = 0;
    for (const GgufTensorInfo& info : file.tensors()) {
      EXPECT_EQ(info.size_bytes(), q_bytes("test", info.known_type(),
                                           info.count() / info.shape.back(), info.shape.back()));
      EXPECT_EQ(info.offset % 32, 0u);
      end = std::max(end, info.offset + info.size_bytes());
    }
    EXPECT_LE(end, fs::file_size(path));
    EXPECT_LT(fs::file_size(path) - end, 32u);

    // Written again, all of it is as it was.
    const Folder out;
    GgufWriter writer;
    for (const GgufEntry& entry : file.metadata()) writer.add(entry.key, entry.value);
    for (const GgufTensorInfo& info : file.tensors()) {
      writer.add_tensor(info.name, info.shape, info.known_type(), file.bytes(info));
    }
    writer.write(out.file("copy.gguf"));
    EXPECT_TRUE(contents(out.file("copy.gguf")) == contents(path));
  }
}

}  // namespace
}  // namespace tl
