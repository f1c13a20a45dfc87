// GGUF files: what is written comes back bit for bit, files of others are read, and damaged ones
// end in a BadFile that names the byte and the field.
#include "tl/model/gguf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "model/gguf_part.h"
#include "support/on_every_device.h"
#include "tl/base/error.h"
#include "tl/model/gguf_writer.h"

namespace tl {
namespace {

using test::expect_error;
namespace fs = std::filesystem;

// ---- files made by hand

// Bytes one after another, and where fields begin.
class Raw {
 public:
  explicit Raw(std::uint32_t version = 3) : version_(version) {}

  template <class T>
  Raw& number(T value) {
    const char* bytes = reinterpret_cast<const char*>(&value);
    text_.append(bytes, sizeof value);
    return *this;
  }
  Raw& u32(std::uint32_t value) { return number(value); }
  Raw& u64(std::uint64_t value) { return number(value); }
  Raw& raw(std::string_view text) {
    text_ += text;
    return *this;
  }
  // A length or a count: its width is the version's.
  Raw& length(std::uint64_t value) {
    return version_ == 1 ? u32(static_cast<std::uint32_t>(value)) : u64(value);
  }
  Raw& string(std::string_view text) { return length(text.size()).raw(text); }
  Raw& start(std::uint64_t tensors, std::uint64_t keys) {
    return raw("GGUF").u32(version_).length(tensors).length(keys);
  }
  Raw& key(std::string_view name, GgufType type) {
    return string(name).u32(static_cast<std::uint32_t>(type));
  }
  Raw& tensor(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
              std::uint64_t offset) {
    string(name).u32(static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) length(size);
    return u32(type).u64(offset);
  }
  Raw& pad(std::size_t alignment = 32) {
    text_.resize((text_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  Raw& data(std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) text_ += static_cast<char>(i);
    return *this;
  }
  std::size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(text_)); }
  // The file is of these bytes: while it is used they must be there.
  GgufFile open() const { return GgufFile::from_memory(bytes(), "f"); }

 private:
  std::uint32_t version_;
  std::string text_;
};

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / join("tallow-gguf-", ::getpid())) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

void save(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}
std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::byte> pattern(std::size_t size, unsigned seed = 1) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7 + seed);
  return out;
}

void refused(const Raw& raw, const std::string& text) {
  expect_error(ErrorKind::BadFile, text, [&] { raw.open(); });
}

// ---- values

template <class T>
void expect_widened(T stored) {
  const GgufValue value(stored);
  EXPECT_EQ(value.to<std::uint8_t>(), 3);
  EXPECT_EQ(value.to<std::int8_t>(), 3);
  EXPECT_EQ(value.to<std::uint16_t>(), 3);
  EXPECT_EQ(value.to<std::int16_t>(), 3);
  EXPECT_EQ(value.to<std::uint32_t>(), 3u);
  EXPECT_EQ(value.to<std::int32_t>(), 3);
  EXPECT_EQ(value.to<std::uint64_t>(), 3u);
  EXPECT_EQ(value.to<std::int64_t>(), 3);
  const std::array<T, 2> numbers{3, 4};
  const GgufValue array = GgufValue::array(std::span<const T>(numbers));
  EXPECT_EQ(array.to_vector<std::uint32_t>(), (std::vector<std::uint32_t>{3, 4}));
  EXPECT_EQ(array.to_vector<std::int8_t>(), (std::vector<std::int8_t>{3, 4}));
  EXPECT_EQ(array.to_vector<std::uint64_t>(), (std::vector<std::uint64_t>{3, 4}));
}

TEST(GgufValue, AnyIntegerReadsAsAnyThatHoldsIt) {
  expect_widened<std::uint8_t>(3);
  expect_widened<std::int8_t>(3);
  expect_widened<std::uint16_t>(3);
  expect_widened<std::int16_t>(3);
  expect_widened<std::uint32_t>(3);
  expect_widened<std::int32_t>(3);
  expect_widened<std::uint64_t>(3);
  expect_widened<std::int64_t>(3);
}

TEST(GgufValue, WhatDoesNotFitIsRefusedWithKeyTypeAndValue) {
  const auto file = Raw()
                        .start(0, 5)
                        .key("a.count", GgufType::I32)
                        .number<std::int32_t>(-1)
                        .key("b.big", GgufType::U64)
                        .u64(~0ull)
                        .key("c.text", GgufType::String)
                        .string("seven")
                        .key("d.list", GgufType::Array)
                        .u32(5)
                        .length(2)
                        .number<std::int32_t>(1)
                        .number<std::int32_t>(-300)
                        .key("e.real", GgufType::F64)
                        .number(1e300);
  const GgufFile gguf = file.open();
  const auto fails = [&](const std::string& text, auto action) {
    expect_error(ErrorKind::BadFile, text, action);
  };
  fails("f: key 'a.count' is the i32 -1, which no u32 holds",
        [&] { gguf.get<std::uint32_t>("a.count"); });
  fails("f: key 'b.big' is the u64 18446744073709551615, which no i64 holds",
        [&] { gguf.get<std::int64_t>("b.big"); });
  fails("f: key 'a.count' is the i32 -1, not a float", [&] { gguf.get<float>("a.count"); });
  fails("f: key 'a.count' is the i32 -1, not a bool", [&] { gguf.get<bool>("a.count"); });
  fails("f: key 'a.count' is the i32 -1, not a string", [&] { gguf.get<std::string>("a.count"); });
  fails("f: key 'a.count' is the i32 -1, not an array", [&] { gguf.value("a.count").count(); });
  fails("f: key 'c.text' is the string 'seven', not an integer",
        [&] { gguf.get_or<std::int32_t>("c.text", 1); });
  fails("f: key 'd.list' is an array of 2 i32, not an integer",
        [&] { gguf.get<std::int32_t>("d.list"); });
  fails("f: key 'd.list' has the i32 -300 as element 1, which no i8 holds",
        [&] { gguf.value("d.list").to_vector<std::int8_t>(); });
  fails("f: key 'd.list' is an array of 2 i32, and its elements are not a float",
        [&] { gguf.value("d.list").to_vector<float>(); });
  fails("f: key 'd.list' is an array of 2 i32, not of strings",
        [&] { gguf.value("d.list").to_vector<std::string_view>(); });
  fails("f: key 'e.real' is the f64 1e+300, which no f32 holds",
        [&] { gguf.get<float>("e.real"); });
  fails("f: has no key 'nothing'", [&] { gguf.get<float>("nothing"); });
  fails("f: has no tensor 'nothing'", [&] { gguf.tensor("nothing"); });
  EXPECT_EQ(gguf.find("nothing"), nullptr);
  EXPECT_EQ(gguf.get_or<std::int32_t>("nothing", 7), 7);
  EXPECT_EQ(gguf.get_or<std::int32_t>("a.count", 7), -1);
  EXPECT_EQ(gguf.get_if<float>("nothing"), std::nullopt);
}

TEST(GgufValue, FloatsReadAsEitherWidth) {
  EXPECT_EQ(GgufValue(0.5f).to<double>(), 0.5);
  EXPECT_EQ(GgufValue(0.1).to<float>(), 0.1f);
  EXPECT_TRUE(std::isnan(GgufValue(std::nan("")).to<float>()));
  EXPECT_TRUE(std::isinf(GgufValue(-std::numeric_limits<double>::infinity()).to<float>()));
  const std::array<double, 2> numbers{1.5, -2};
  EXPECT_EQ(GgufValue::array(std::span<const double>(numbers)).to_vector<float>(),
            (std::vector<float>{1.5f, -2}));
}

TEST(GgufValue, NothingReadsAsSomethingItIsNot) {
  EXPECT_THROW(GgufValue(true).to<int>(), Error);
  EXPECT_THROW(GgufValue(true).to<float>(), Error);
  EXPECT_THROW(GgufValue(1.0f).to<int>(), Error);
  EXPECT_THROW(GgufValue("1").to<int>(), Error);
  EXPECT_THROW(GgufValue(std::uint8_t{1}).to<bool>(), Error);
  EXPECT_THROW(GgufValue("x").items(), Error);
  EXPECT_TRUE(GgufValue(true).to<bool>());
  EXPECT_EQ(GgufValue(std::string("x\0y", 3)).to<std::string>(), std::string("x\0y", 3));
}

TEST(GgufValue, ArraysOfDifferentTypesAreRefused) {
  const std::vector<GgufValue> mixed{GgufValue(1), GgufValue(2.0f)};
  expect_error(ErrorKind::BadArgument, "gguf: element 1 of an array of i32 is of f32",
               [&] { GgufValue::array(GgufType::I32, mixed); });
  GgufValue deep = GgufValue::array(GgufType::U8, {});
  for (int depth = 1; depth < GgufValue::kMostNesting; ++depth) {
    deep = GgufValue::array(GgufType::Array, std::vector{deep});
  }
  expect_error(ErrorKind::BadArgument, "nested deeper than 64",
               [&] { GgufValue::array(GgufType::Array, std::vector{deep}); });
}

TEST(GgufValue, ShowsNumbersInTheFewestDigits) {
  EXPECT_EQ(GgufValue(1e-5f).text(), "1e-05");
  EXPECT_EQ(GgufValue(0.1).text(), "0.1");
  EXPECT_EQ(GgufValue(std::int8_t{-7}).text(), "-7");
  EXPECT_EQ(GgufValue(std::uint8_t{200}).text(), "200");
  EXPECT_EQ(GgufValue(true).text(), "true");
  EXPECT_EQ(GgufValue("a b").text(), "a b");
  EXPECT_EQ(GgufValue::array(GgufType::String, {}).text(), "array of 0 string");
}

TEST(GgufValue, CopiesKeepTheBytesOfTheirArrayAlive) {
  std::vector<GgufValue> items;
  {
    const std::vector<std::string> texts{"first text", "second text"};
    items = GgufValue::array(texts).items();
  }
  EXPECT_EQ(items[1].to<std::string_view>(), "second text");
  EXPECT_EQ(items, (std::vector<GgufValue>{"first text", "second text"}));
}

// ---- round trips

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

// ---- the models of the data folder

fs::path data_folder() {
  fs::path at = fs::path(TL_SOURCE).parent_path();
  // Beside the source tree, or beside the folder that work trees are in.
  for (int up = 0; up < 2; ++up, at = at.parent_path()) {
    if (fs::exists(at / "shared/data/gguf")) return at / "shared/data/gguf";
  }
  return {};
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

// ---- writing

TEST(GgufWriter, StreamsATensorInPieces) {
  const Folder folder;
  const std::vector<std::byte> data = pattern(1000);
  GgufWriter writer;
  writer.add_tensor("x", {250}, QType::F32, [&](const GgufWriter::Sink& sink) {
    for (std::size_t at = 0; at < data.size(); at += 300) {
      sink(std::span(data).subspan(at, std::min<std::size_t>(300, data.size() - at)));
    }
  });
  for (int round = 0; round < 2; ++round) {  // a source can be asked again
    writer.write(folder.file("a.gguf"));
    const GgufFile file = GgufFile::open(folder.file("a.gguf"));
    const auto bytes = file.bytes(file.tensor("x"));
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), data.begin(), data.end()));
  }
}

TEST(GgufWriter, RefusesWhatNoFileMayHold) {
  const Folder folder;
  const std::vector<std::byte> data = pattern(64);
  GgufWriter writer;
  writer.add("k", 1u);
  writer.add_tensor("t", {16}, QType::F32, data);
  const auto bad = [&](const std::string& text, auto action) {
    expect_error(ErrorKind::BadArgument, text, action);
  };
  bad("gguf: the key 'k' is there already", [&] { writer.add("k", 2u); });
  bad("gguf: the tensor 't' is there already",
      [&] { writer.add_tensor("t", {16}, QType::F32, data); });
  bad("gguf: the name of a key is not UTF-8 at byte 1", [&] { writer.add("k\xff", 2u); });
  bad("gguf: the name of a tensor is not UTF-8 at byte 0",
      [&] { writer.add_tensor("\x80", {16}, QType::F32, data); });
  bad("gguf: the name of a key has 65536 bytes", [&] { writer.add(std::string(65536, 'k'), 1u); });
  bad("gguf: the key 'split.count' is written where", [&] { writer.add("split.count", 2u); });
  bad("gguf: tensor 'u': Q4_0 has blocks of 32 elements, and rows of 31",
      [&] { writer.add_tensor("u", {2, 31}, QType::Q4_0, data); });
  bad("has more than 4 dimensions",
      [&] { writer.add_tensor("u", {1, 1, 1, 1, 16}, QType::F32, data); });
  bad("gguf: an alignment of 12 is no power of two", [] { GgufWriter({.alignment = 12}); });
  bad("gguf: an alignment of 4 is no power of two", [&] { writer.add("general.alignment", 4u); });
  bad("gguf: an alignment of 0 is no power", [&] { writer.add("general.alignment", -32); });
  bad("gguf: the key 'general.alignment' is of type string",
      [&] { writer.add("general.alignment", "32"); });
  bad("gguf: the key 'general.alignment' is 16, and the writer was made for 64", [] {
    GgufWriter other({.alignment = 64});
    other.add("general.alignment", 16u);
  });
  expect_error(ErrorKind::SizeMismatch, "tensor 'u' of F32 and shape (15,) has 60 bytes, not 64",
               [&] { writer.add_tensor("u", {15}, QType::F32, data); });
  expect_error(ErrorKind::BadFile, "/nowhere/x.gguf: cannot be created",
               [&] { writer.write("/nowhere/x.gguf"); });
  writer.write(folder.file("a.gguf"));  // what was refused left nothing behind
  EXPECT_EQ(GgufFile::open(folder.file("a.gguf")).tensors().size(), 1u);
  EXPECT_EQ(GgufFile::open(folder.file("a.gguf")).metadata().size(), 1u);
}

TEST(GgufWriter, ASourceThatGivesTooMuchOrTooLittleLeavesNoFile) {
  const Folder folder;
  const std::vector<std::byte> data = pattern(64);
  for (const std::size_t size : {0u, 60u, 64u}) {
    GgufWriter writer;
    writer.add_tensor("x", {15}, QType::F32, [&, size](const GgufWriter::Sink& sink) {
      if (size == 0) throw Error(ErrorKind::BadArgument, "source", "failed");
      sink(std::span(data).first(size));
      if (size == 60) sink(std::span(data).first(1));
    });
    if (size == 0) {
      expect_error(ErrorKind::BadArgument, "source: failed",
                   [&] { writer.write(folder.file("a.gguf")); });
    } else {
      expect_error(
          ErrorKind::SizeMismatch,
          join("gguf: tensor 'x' has 60 bytes, and its source gave ", size == 60 ? 61 : 64),
          [&] { writer.write(folder.file("a.gguf")); });
    }
  }
  GgufWriter writer;
  writer.add_tensor("x", {15}, QType::F32, [](const GgufWriter::Sink&) {});
  expect_error(ErrorKind::SizeMismatch, "has 60 bytes, and its source gave 0",
               [&] { writer.write(folder.file("a.gguf")); });
  EXPECT_EQ(folder.count(), 0u);
}

// ---- models in parts

// Five tensors of 40 bytes, which take 64 each.
std::vector<std::string> write_parts(const Folder& folder, GgufWriter::Options options) {
  static const std::vector<std::byte> data = pattern(200);
  GgufWriter writer(options);
  writer.add("general.architecture", "llama");
  for (std::size_t i = 0; i < 5; ++i) {
    writer.add_tensor(join("t", i), {10}, QType::F32, std::span(data).subspan(40 * i, 40));
  }
  return writer.write(folder.file("m.gguf"));
}

TEST(GgufParts, AnyPartOpensTheWholeModel) {
  for (const GgufWriter::Options& options :
       {GgufWriter::Options{.alignment = {}, .max_part_tensors = 2},
        GgufWriter::Options{.alignment = 64, .max_part_tensors = 0, .max_part_bytes = 130}}) {
    const Folder folder;
    const std::vector<std::string> paths = write_parts(folder, options);
    ASSERT_EQ(paths.size(), 3u);
    EXPECT_EQ(paths[1], folder.file("m-00002-of-00003.gguf"));
    EXPECT_EQ(folder.count(), 3u);
    for (const std::string& path : paths) {
      const GgufFile file = GgufFile::open(path);
      EXPECT_EQ(std::vector(file.parts().begin(), file.parts().end()), paths);
      EXPECT_EQ(file.architecture(), "llama");
      EXPECT_EQ(file.get<int>("split.count"), 3);
      EXPECT_EQ(file.get<int>("split.no"), 0);
      ASSERT_EQ(file.tensors().size(), 5u);
      const std::vector<std::byte> data = pattern(200);
      for (std::size_t i = 0; i < 5; ++i) {
        const GgufTensorInfo& info = file.tensor(join("t", i));
        EXPECT_EQ(&info, &file.tensors()[i]);
        EXPECT_EQ(info.part, i / 2);
        const auto bytes = file.bytes(info);
        EXPECT_TRUE(
            std::equal(bytes.begin(), bytes.end(), data.begin() + 40 * static_cast<long>(i)));
      }
      EXPECT_EQ(file.parameters(), 50u);
      EXPECT_EQ(file.tensor_bytes(), 200u);
    }
  }
}

TEST(GgufParts, ATensorLargerThanThePartHasOneOfItsOwn) {
  const Folder folder;
  EXPECT_EQ(
      write_parts(folder, {.alignment = {}, .max_part_tensors = 0, .max_part_bytes = 1}).size(),
      5u);
  EXPECT_EQ(write_parts(folder, {.alignment = {}, .max_part_tensors = 5}),
            std::vector{folder.file("m.gguf")});
}

class Parts : public testing::Test {
 protected:
  void SetUp() override {
    paths = write_parts(folder, {.alignment = {}, .max_part_tensors = 2});
    for (const std::string& path : paths) parts.push_back(contents(path));
  }
  void refused(std::size_t opened, const std::string& text) const {
    expect_error(ErrorKind::BadFile, text, [&] { GgufFile::open(paths[opened]); });
  }
  // Another value for a key of a part.
  void change(std::size_t part, std::string_view key, std::uint16_t value) {
    std::string text = contents(paths[part]);
    const std::size_t at = text.find(key);
    ASSERT_NE(at, std::string::npos);
    std::memcpy(text.data() + at + key.size() + 4, &value, 2);
    save(paths[part], text);
  }
  Folder folder;
  std::vector<std::string> paths, parts;
};

TEST_F(Parts, AMissingPartIsNamed) {
  fs::remove(paths[1]);
  refused(0, join(paths[0], ": is part 1 of 3; part 2 is missing: map file: cannot open '",
                  paths[1], "'"));
  refused(2, "part 2 is missing");
}

TEST_F(Parts, APartUnderAnotherNameIsRefused) {
  save(folder.file("x.gguf"), parts[1]);
  expect_error(ErrorKind::BadFile,
               "x.gguf: is part 2 of 3, and only under a name like "
               "NAME-00002-of-00003.gguf can the other parts be found",
               [&] { GgufFile::open(folder.file("x.gguf")); });
  save(folder.file("m-00002-of-00004.gguf"), parts[1]);
  expect_error(ErrorKind::BadFile, "is named part 2 of 4 and says it is part 2 of 3",
               [&] { GgufFile::open(folder.file("m-00002-of-00004.gguf")); });
  expect_error(ErrorKind::BadFile,
               "f: is part 2 of 3; a model in parts can only be read from files",
               [&] { GgufFile::from_memory(std::as_bytes(std::span(parts[1])), "f"); });
}

TEST_F(Parts, TheSamePartTwiceIsRefused) {
  save(paths[1], parts[0]);
  refused(0, join(paths[1], ": says it is part 1, not 2"));
  refused(1, join(paths[1], ": is named part 2 of 3 and says it is part 1 of 3"));
}

TEST_F(Parts, PartsThatDisagreeAreRefused) {
  change(1, "split.count", 4);
  refused(0, join(paths[1], ": says there are 4 parts, and ", paths[0], " says 3"));
  change(1, "split.count", 0);
  refused(0, join(paths[1], ": says there are 1 parts, and ", paths[0], " says 3"));
  change(1, "split.count", 3);
  change(1, "split.no", 9);
  refused(0, "key 'split.no' is 9, and there are 3 parts, counted from 0");
  change(1, "split.no", 1);
  change(1, "split.tensors.count", 6);
  refused(0, join(paths[1], ": says the parts have 6 tensors, and ", paths[0], " says 5"));
  for (std::size_t part : {0u, 2u}) change(part, "split.tensors.count", 6);
  refused(0, join(paths[0], ": key 'split.tensors.count' is 6, and the 3 parts have 5"));
}

TEST_F(Parts, ATensorInTwoPartsIsRefused) {
  std::string text = parts[2];
  text.replace(text.find("t4"), 2, "t1");
  save(paths[2], text);
  refused(0, join(paths[2], ": tensor 't1' is in ", paths[0], " too"));
}

TEST_F(Parts, APartThatIsDamagedIsNamed) {
  save(paths[2], std::string_view(parts[2]).substr(0, 50));
  refused(0, join(paths[2], ": byte "));
}

TEST(GgufParts, NumbersOfOtherTypesAreRefused) {
  refused(Raw().start(0, 1).key("split.count", GgufType::String).string("3"),
          "f: key 'split.count' is the string '3', not an integer");
  refused(Raw().start(0, 1).key("split.count", GgufType::U16).raw(std::string_view("\3\0", 2)),
          "f: is one of 3 parts and has no key 'split.no'");
  refused(Raw()
              .start(0, 2)
              .key("split.count", GgufType::U16)
              .raw(std::string_view("\3\0", 2))
              .key("split.no", GgufType::I32)
              .number<std::int32_t>(-1),
          "f: key 'split.no' is the i32 -1, which no u64 holds");
  EXPECT_EQ(Raw().start(0, 1).key("split.count", GgufType::U8).raw("\1").open().parts().size(), 1u);
}

TEST(GgufParts, NamesAreReadAndMade) {
  const auto name = gguf::parse_split_name("/a/b-00002-of-00013.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->prefix, "/a/b");
  EXPECT_EQ(name->number, 2u);
  EXPECT_EQ(name->count, 13u);
  EXPECT_EQ(gguf::split_path("/a/b", 2, 13), "/a/b-00002-of-00013.gguf");
  for (const char* other : {"", "b.gguf", "b-0002-of-00013.gguf", "b-00002-of-00013.bin",
                            "b-00002of-00013.gguf", "b-+0002-of-00013.gguf", "00002-of-00013.gguf",
                            "b_00002-of-00013.gguf", "-of-00013.gguf"}) {
    EXPECT_FALSE(gguf::parse_split_name(other)) << other;
  }
}

// ---- damage

TEST(GgufDamage, FilesThatAreNoGgufAreRefused) {
  refused(Raw().raw("GG"), "f: byte 0: the magic takes 4 bytes, 2 are left");
  refused(Raw().raw("PK\3\4 and more"), "f: byte 0: the magic is not 'GGUF'");
  refused(Raw().raw("FUGG").u32(0x03000000),
          "f: byte 0: the magic is byte-reversed: a big-endian GGUF file");
  refused(Raw().raw("GGUF").u32(0x03000000), "f: byte 4: the version is 3 byte-reversed: a big");
  refused(Raw().raw("GGUF").u32(0), "f: byte 4: the version is 0; 1 to 3 can be read");
  refused(Raw().raw("GGUF").u32(4), "f: byte 4: the version is 4; 1 to 3 can be read");
  expect_error(ErrorKind::BadFile, "/nowhere/x.gguf", [] { GgufFile::open("/nowhere/x.gguf"); });
}

TEST(GgufDamage, CountsAreCheckedAgainstTheBytesLeft) {
  refused(Raw().start(~0ull, 0),
          "f: byte 8: the tensor count is 18446744073709551615, and the 8 bytes left have room");
  refused(Raw().start(0, ~0ull), "f: byte 16: the key count is 18446744073709551615, and the 0");
  refused(Raw(1).start(~0u, 0), "f: byte 8: the tensor count is 4294967295, and the 4 bytes left");
  refused(Raw().start(0, 1).length(~0ull).raw("0123456789"),
          "f: byte 24: the name of key 0 has a length of 18446744073709551615, and 10 bytes");
  refused(Raw().start(0, 1).key("k", GgufType::String).length(1ull << 40),
          "f: byte 37: the value of key 'k' has a length of 1099511627776, and 0 bytes are left");
  refused(Raw().start(0, 1).key("k", GgufType::Array).u32(0).length(1ull << 62),
          "f: byte 41: the element count of key 'k' is 4611686018427387904, and the 0 bytes left");
  refused(Raw().start(0, 1).key("k", GgufType::Array).u32(10).length((1ull << 61) + 1).u64(0),
          "f: byte 41: the element count of key 'k' is 2305843009213693953, and the 8 bytes left");
  refused(Raw().start(0, 1).key("k", GgufType::Array).u32(8).length(3).u64(0).u64(0),
          "f: byte 41: the element count of key 'k' is 3, and the 16 bytes left have room for 2");
  refused(Raw().start(0, 1).key("k", GgufType::Array).u32(8).length(2).u64(0).u64(1),
          "f: byte 57: the text in the array of key 'k' has a length of 1, and 0 bytes are left");
  refused(Raw().start(0, 1).key("k", GgufType::Array).u32(9).length(2).u32(9).u64(1),
          "f: byte 41: the element count of key 'k' is 2, and the 12 bytes left have room for 1");
}

TEST(GgufDamage, CountsAreNotBelievedBecauseTheFileIsLong) {
  // A file of a terabyte that takes a few bytes of the disk: zeros are keys and tensors without
  // end.
  const Folder folder;
  const std::string path = folder.file("sparse.gguf");
  for (const bool keys : {true, false}) {
    save(path, Raw().start(keys ? 0 : 1ull << 32, keys ? 1ull << 32 : 0).text());
    std::error_code refused;
    fs::resize_file(path, std::uintmax_t{1} << 40, refused);
    if (refused) GTEST_SKIP() << "no sparse files here: " << refused.message();
    expect_error(ErrorKind::BadFile,
                 keys ? "byte 37: the name of key 1 is '', as that of key 0"
                      : "byte 48: the name of tensor 1 is '', as that of tensor 0",
                 [&] { GgufFile::open(path); });
  }
}

TEST(GgufDamage, TypesOfValuesAreChecked) {
  refused(Raw().start(0, 1).string("k").u32(13).u64(0),
          "f: byte 33: the type of key 'k' is 13, and no type of value has that code");
  refused(Raw().start(0, 1).key("k", GgufType::Array).u32(99).u64(0),
          "f: byte 37: the element type of key 'k' is 99, and no type");
  refused(Raw().start(0, 1).key("k", GgufType::Bool).raw("\2"),
          "f: byte 37: the value of key 'k' has the byte 2, which is no bool");
  refused(Raw().start(0, 1).key("k", GgufType::Array).u32(7).length(3).raw("\1\1\x80"),
          "f: byte 51: the value of key 'k' has the byte 128, which is no bool");
}

TEST(GgufDamage, NestingIsBounded) {
  const auto nested = [](int depth) {
    Raw raw;
    raw.start(0, 1).key("k", GgufType::Array);
    for (int i = 1; i < depth; ++i) raw.u32(9).length(1);
    return raw.u32(0).length(0);
  };
  EXPECT_EQ(nested(64).open().value("k").count(), 1u);
  refused(nested(65), "f: byte 805: the value of key 'k' has arrays nested deeper than 64");
  refused(nested(1'000'000), "f: byte 805: the value of key 'k' has arrays nested deeper than 64");
}

TEST(GgufDamage, NamesAreUtf8AndThereOnce) {
  refused(Raw().start(0, 1).key("k\xc0\xaf", GgufType::U8).raw("\1"),
          "f: byte 33: the name of key 0 is not UTF-8");
  refused(Raw().start(1, 0).tensor("weight\xff", {1}, 0, 0).pad().data(4),
          "f: byte 38: the name of tensor 0 is not UTF-8");
  refused(Raw()
              .start(0, 3)
              .key("k", GgufType::U8)
              .raw("\1")
              .key("j", GgufType::U8)
              .raw("\1")
              .key("k", GgufType::U8)
              .raw("\1"),
          "f: byte 52: the name of key 2 is 'k', as that of key 0");
  refused(Raw().start(2, 0).tensor("t", {1}, 0, 0).tensor("t", {1}, 0, 32).pad().data(64),
          "f: byte 57: the name of tensor 1 is 't', as that of tensor 0");
  // In values any bytes will do.
  EXPECT_EQ(
      Raw().start(0, 1).key("k", GgufType::String).string("\xff").open().get<std::string>("k"),
      "\xff");
  refused(Raw().start(0, 1).key(std::string(65536, 'n'), GgufType::U8).raw("\1"),
          "f: byte 24: the name of key 0 has a length of 65536; at most 65535 can be read");
  // A long name is not told in full.
  try {
    Raw().start(0, 1).key(std::string(65535, 'n'), GgufType::Bool).raw("\7").open();
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::strlen(error.what()), 300u);
  }
}

TEST(GgufDamage, ShapesAreChecked) {
  refused(Raw().start(1, 0).tensor("t", std::vector<std::uint64_t>(9, 1), 0, 0).pad().data(4),
          "f: byte 33: the rank of tensor 't' is 9; at most 8 can be read");
  refused(Raw().start(1, 0).tensor("t", {1ull << 63}, 0, 0).pad(),
          "f: byte 37: the shape of tensor 't' has 9223372036854775808 as size 0");
  refused(Raw().start(1, 0).tensor("t", {1ull << 32, 1ull << 31}, 0, 0).pad(),
          "f: byte 45: the shape of tensor 't' has 2147483648 as size 1, and more than 2^63");
  refused(Raw().start(1, 0).tensor("t", {1ull << 62, 0, 4}, 0, 0).pad(),
          "f: byte 53: the shape of tensor 't' has 4 as size 2, and more than 2^63");
  refused(Raw().start(1, 0).tensor("t", {1ull << 62}, 28, 0).pad(),
          "f: byte 45: the shape of tensor 't' is (4611686018427387904,) of F64, more bytes");
  refused(Raw().start(1, 0).tensor("t", {48}, 2, 0).pad().data(64),
          "f: byte 45: the type of tensor 't' is Q4_0 with blocks of 32 elements, and its rows "
          "have 48");
  refused(Raw().start(2, 0).tensor("t", {1ull << 62}, 99, 0).tensor("u", {1ull << 62}, 99, 0).pad(),
          "f: byte 57: the shape of tensor 'u' is (4611686018427387904,), with which there are");
}

TEST(GgufDamage, OffsetsAreAlignedInsideAndApart) {
  refused(Raw().start(1, 0).tensor("t", {1}, 0, 8).pad().data(32),
          "f: byte 49: the offset of tensor 't' is 8, no multiple of the alignment 32");
  refused(Raw().start(1, 0).tensor("t", {9}, 0, 0).pad().data(32),
          "f: byte 49: the offset of tensor 't' is 0, and with its 36 bytes it reaches outside "
          "the 32 bytes of data");
  refused(Raw().start(1, 0).tensor("t", {1}, 0, 32).pad().data(32),
          "f: byte 49: the offset of tensor 't' is 32, and with its 4 bytes");
  refused(Raw().start(1, 0).tensor("t", {1}, 0, ~31ull).pad().data(32),
          "f: byte 49: the offset of tensor 't' is 18446744073709551584, and with its 4 bytes");
  refused(Raw().start(1, 0).tensor("t", {1}, 99, 64).pad().data(32),
          "f: byte 49: the offset of tensor 't' is 64, and with its 0 bytes");
  refused(Raw().start(2, 0).tensor("t", {16}, 0, 0).tensor("u", {1}, 0, 32).pad().data(64),
          "f: byte 82: the offset of tensor 'u' lies inside the data of tensor 't'");
  refused(Raw().start(2, 0).tensor("t", {1}, 0, 0).tensor("u", {1}, 0, 0).pad().data(64),
          "lies inside the data of tensor");
}

TEST(GgufDamage, TheAlignmentIsChecked) {
  const auto with = [](GgufType type, auto value) {
    return Raw().start(0, 1).key("general.alignment", type).number(value);
  };
  const std::string start = "f: byte 24: the value of key 'general.alignment' is ";
  refused(with(GgufType::U32, 0u), start + "0, not a power of two from 8 to 1073741824");
  refused(with(GgufType::U32, 3u), start + "3, not a power");
  refused(with(GgufType::U32, 4u), start + "4, not a power");
  refused(with(GgufType::U64, 1ull << 40), start + "1099511627776, not a power");
  refused(with(GgufType::U64, ~0ull), start + "18446744073709551615, not a power");
  refused(with(GgufType::I32, -32), start + "-32, not a power");
  refused(with(GgufType::F32, 32.0f), start + "of type f32, not an integer");
  refused(Raw().start(0, 1).key("general.alignment", GgufType::String).string("32"),
          start + "of type string, not an integer");
}

// A small file with everything in it, whose last byte is needed.
Raw everything(std::uint32_t version) {
  Raw raw(version);
  raw.start(3, 6);
  raw.key("general.architecture", GgufType::String).string("llama");
  raw.key("a.bool", GgufType::Bool).raw("\1");
  raw.key("a.float", GgufType::F32).number(1.0f);
  raw.key("words", GgufType::Array).u32(8).length(2).string("a").string("bc");
  raw.key("nested", GgufType::Array).u32(9).length(1).u32(4).length(2).u32(7).u32(8);
  raw.key("general.alignment", GgufType::U32).u32(8);
  raw.tensor("x", {4, 2}, 0, 0).tensor("blocks", {32}, 2, 32).tensor("old", {7}, 4, 0);
  return raw.pad(8).data(50);
}

// Reads all there is to read.
void read_everything(const GgufFile& file) {
  for (const GgufEntry& entry : file.metadata()) {
    if (!entry.value.is_array()) continue;
    for (const GgufValue& item : entry.value.items()) item.text();
  }
  std::size_t sum = 0;
  for (const GgufTensorInfo& info : file.tensors()) {
    if (!info.type) continue;
    for (const std::byte each : file.bytes(info)) sum += std::to_integer<std::size_t>(each);
  }
  EXPECT_GE(sum, 0u);
}

// A copy of exactly that size, so that a sanitizer sees a read past its end.
bool survives(std::string_view text) {
  const std::vector<char> exact(text.begin(), text.end());
  try {
    read_everything(GgufFile::from_memory(std::as_bytes(std::span(exact)), "f"));
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(name(error.kind), name(ErrorKind::BadFile)) << error.what();
    EXPECT_TRUE(std::string_view(error.what()).starts_with("f: ")) << error.what();
    return false;
  }
}

TEST(GgufDamage, AFileCutShortAnywhereIsRefused) {
  for (const std::uint32_t version : {1u, 2u, 3u}) {
    const Raw raw = everything(version);
    EXPECT_TRUE(survives(raw.text()));
    for (std::size_t size = 0; size < raw.size(); ++size) {
      EXPECT_FALSE(survives(std::string_view(raw.text()).substr(0, size))) << size;
      expect_error(ErrorKind::BadFile, "f: byte ",
                   [&] { GgufFile::from_memory(raw.bytes().first(size), "f"); });
    }
  }
}

TEST(GgufDamage, EveryByteMayBeWrong) {
  for (const std::uint32_t version : {1u, 3u}) {
    const std::string good = everything(version).text();
    std::string bad = good;
    for (std::size_t i = 0; i < bad.size(); ++i) {
      for (const unsigned value : {0u, 1u, 0x7fu, 0x80u, 0xffu}) {
        bad[i] = static_cast<char>(value);
        survives(bad);
        bad[i] = static_cast<char>(static_cast<unsigned char>(good[i]) ^ value);
        survives(bad);
      }
      bad[i] = good[i];
    }
    std::mt19937_64 random(7);
    for (int round = 0; round < 5000; ++round) {
      bad = good;
      for (std::uint64_t edits = 1 + random() % 8; edits > 0; --edits) {
        bad[random() % bad.size()] = static_cast<char>(random());
      }
      survives(bad);
    }
  }
}

}  // namespace
}  // namespace tl
