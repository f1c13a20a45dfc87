// Damaged GGUF files end in a BadFile that names the byte and the field.
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
#include "tl/model/gguf.h"

namespace tl {
namespace {

using namespace test;

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
  [[maybe_unused]] volatile const std::size_t seen = sum;  // so that the bytes are read
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
