// Models in several files: any part opens all of them, and parts that do not fit are refused.
#include "model/gguf_part.h"

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
#include "tl/model/gguf_writer.h"

namespace tl {
namespace {

using namespace test;

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
  refused(0, join(paths[0], ": is part 1 of 3; part 2 is missing: read file: cannot open '",
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

}  // namespace
}  // namespace tl
