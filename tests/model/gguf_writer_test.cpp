// Writing GGUF files.
#include "tl/model/gguf_writer.h"

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

}  // namespace
}  // namespace tl
