#include "tl/model/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/gguf_files.h"
#include "support/on_every_device.h"
#include "tl/model/gguf_writer.h"
#include "tl/quant/qtensor.h"

namespace tl {
namespace {

using test::expect_error;

class QuantizeModel : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }

 private:
  test::Folder folder_;
};

// A model of the data folder; the tests that need one are skipped where there is none.
std::string shared_file(const std::string& name) { return (test::data_folder() / name).string(); }

// A model of `layers` layers with the tensors that recipes tell apart.
GgufWriter small_model(std::uint32_t layers, std::int64_t width,
                       std::vector<std::vector<float>>& keep) {
  GgufWriter writer;
  writer.add("general.architecture", GgufValue("llama"));
  writer.add("llama.block_count", GgufValue(layers));
  writer.add("llama.attention.head_count", GgufValue(std::uint32_t{8}));
  writer.add("llama.attention.head_count_kv", GgufValue(std::uint32_t{2}));
  const auto add = [&](const std::string& name, const Shape& shape) {
    keep.emplace_back(static_cast<std::size_t>(element_count("test", shape)));
    for (std::size_t i = 0; i < keep.back().size(); ++i) {
      keep.back()[i] = std::sin(static_cast<float>(i * 7 + keep.size()));
    }
    writer.add_tensor(name, shape, QType::F32, std::as_bytes(std::span(keep.back())));
  };
  keep.reserve(8 + 4 * layers);
  add("token_embd.weight", {2, width});
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    add(layer + "attn_v.weight", {2, width});
    add(layer + "ffn_down.weight", {2, width});
    add(layer + "attn_norm.weight", {width});
    add(layer + "attn_q.weight", {2, width});
  }
  add("output.weight", {2, width});
  return writer;
}

std::map<std::string, QType> types_of(const GgufFile& file, std::string_view recipe) {
  const auto types = quant_types(file, find_quant_recipe(recipe));
  std::map<std::string, QType> result;
  for (std::size_t i = 0; i < types.size(); ++i) result[file.tensors()[i].name] = types[i];
  return result;
}

TEST_F(QuantizeModel, GivesEachTensorTheTypeThatTheUsualToolsGive) {
  const std::string from = shared_file("tiny-llama-f32.gguf");
  if (test::data_folder().empty()) GTEST_SKIP() << "no shared/data/gguf near the sources";
  const GgufFile file = GgufFile::open(from);
  for (const auto& [recipe, known] :
       {std::pair{"F16", "f16"}, std::pair{"Q8_0", "q8_0"}, std::pair{"Q4_0", "q4_0"},
        std::pair{"Q4_K_M", "q4_k_m"}, std::pair{"Q6_K", "q6_k"}}) {
    const GgufFile other =
        GgufFile::open(shared_file("tiny-llama-" + std::string(known) + ".gguf"));
    const std::string to = path(std::string(known) + ".gguf");
    quantize_gguf(file, to, find_quant_recipe(recipe));
    const GgufFile ours = GgufFile::open(to);
    ASSERT_EQ(ours.tensors().size(), other.tensors().size());
    EXPECT_EQ(ours.get<std::uint32_t>("general.file_type"),
              other.get<std::uint32_t>("general.file_type"));
    for (const GgufTensorInfo& tensor : other.tensors()) {
      const GgufTensorInfo& mine = ours.tensor(tensor.name);
      EXPECT_EQ(mine.known_type(), tensor.known_type()) << tensor.name << " in " << recipe;
      EXPECT_EQ(mine.shape, tensor.shape);
      const auto a = ours.bytes(mine), b = other.bytes(tensor);
      const bool by_rule = is_plain(tensor.known_type()) || tensor.known_type() == QType::Q4_0 ||
                           tensor.known_type() == QType::Q8_0;
      // The others choose scales by a search.
      if (by_rule) {
        EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << tensor.name;
      }
    }
  }
}

TEST_F(QuantizeModel, SearchedTensorsAreAtLeastAsNearAsTheUsualTools) {
  const std::string from = shared_file("tiny-llama-f32.gguf");
  if (test::data_folder().empty()) GTEST_SKIP() << "no shared/data/gguf near the sources";
  const GgufFile file = GgufFile::open(from);
  for (const auto& [recipe, known] : {std::pair{"Q4_K_M", "q4_k_m"}, std::pair{"Q6_K", "q6_k"}}) {
    const GgufFile other =
        GgufFile::open(shared_file("tiny-llama-" + std::string(known) + ".gguf"));
    const std::string to = path(std::string(known) + ".gguf");
    quantize_gguf(file, to, find_quant_recipe(recipe));
    const GgufFile ours = GgufFile::open(to);
    double our_error = 0, their_error = 0;
    for (const GgufTensorInfo& tensor : other.tensors()) {
      const auto values = [](const GgufFile& f, const GgufTensorInfo& info) {
        return QTensor::from_blocks(f.bytes(info), info.known_type(), info.shape)
            .dequantize()
            .to_vector<float>();
      };
      const auto want = values(file, file.tensor(tensor.name));
      const auto a = values(ours, ours.tensor(tensor.name)), b = values(other, tensor);
      for (std::size_t i = 0; i < want.size(); ++i) {
        our_error += std::pow(static_cast<double>(a[i]) - want[i], 2);
        their_error += std::pow(static_cast<double>(b[i]) - want[i], 2);
      }
    }
    EXPECT_LE(our_error, their_error) << recipe;
  }
}

TEST_F(QuantizeModel, KeepsNormsAndTakesSmallerBlocksForShortRows) {
  std::vector<std::vector<float>> keep;
  small_model(9, 96, keep).write(path("m.gguf"));
  const GgufFile file = GgufFile::open(path("m.gguf"));
  const auto types = types_of(file, "Q4_K_M");
  EXPECT_EQ(types.at("blk.0.attn_norm.weight"), QType::F32);
  EXPECT_EQ(types.at("blk.0.attn_q.weight"), QType::Q5_0);  // for Q4_K
  EXPECT_EQ(types.at("blk.0.attn_v.weight"), QType::Q8_0);  // for Q6_K
  EXPECT_EQ(types.at("output.weight"), QType::Q8_0);
}

TEST_F(QuantizeModel, RecipesGiveMoreBitsWhereTheyCount) {
  std::vector<std::vector<float>> keep;
  small_model(16, 256, keep).write(path("m.gguf"));
  const GgufFile file = GgufFile::open(path("m.gguf"));
  const auto medium = types_of(file, "q4_k");  // stands for Q4_K_M
  const std::vector<int> more = {0, 1, 4, 7, 10, 13, 14, 15};
  for (int i = 0; i < 16; ++i) {
    const bool expected = std::find(more.begin(), more.end(), i) != more.end();
    const std::string layer = "blk." + std::to_string(i) + ".";
    EXPECT_EQ(medium.at(layer + "attn_v.weight"), expected ? QType::Q6_K : QType::Q4_K) << i;
    EXPECT_EQ(medium.at(layer + "ffn_down.weight"), expected ? QType::Q6_K : QType::Q4_K) << i;
    EXPECT_EQ(medium.at(layer + "attn_q.weight"), QType::Q4_K);
  }
  const auto two = types_of(file, "Q2_K");
  EXPECT_EQ(two.at("blk.5.attn_v.weight"), QType::Q4_K);  // four heads share one
  EXPECT_EQ(two.at("blk.5.ffn_down.weight"), QType::Q3_K);
  EXPECT_EQ(two.at("blk.5.attn_q.weight"), QType::Q2_K);
  EXPECT_EQ(two.at("output.weight"), QType::Q6_K);
}

TEST_F(QuantizeModel, RefusesWhatWouldLoseTwiceUnlessAsked) {
  std::vector<std::vector<float>> keep;
  small_model(2, 256, keep).write(path("m.gguf"));
  const GgufFile file = GgufFile::open(path("m.gguf"));
  quantize_gguf(file, path("q8.gguf"), find_quant_recipe("Q8_0"));
  const GgufFile q8 = GgufFile::open(path("q8.gguf"));
  expect_error(ErrorKind::BadArgument, "loses twice",
               [&] { quantize_gguf(q8, path("q4.gguf"), find_quant_recipe("Q4_0")); });
  EXPECT_FALSE(std::filesystem::exists(path("q4.gguf")));
  const QuantizeResult result =
      quantize_gguf(q8, path("q4.gguf"), find_quant_recipe("Q4_0"),
                    {.requantize = true, .dry_run = false, .progress = {}});
  EXPECT_LT(result.bytes_after, result.bytes_before);
  EXPECT_EQ(GgufFile::open(path("q4.gguf")).tensor("blk.0.attn_q.weight").known_type(),
            QType::Q4_0);
  // The same type again changes nothing.
  EXPECT_EQ(quantize_gguf(q8, path("same.gguf"), find_quant_recipe("Q8_0")).changed, 0u);
}

TEST_F(QuantizeModel, WrongNamesAndItsOwnInputAreErrors) {
  std::vector<std::vector<float>> keep;
  small_model(1, 256, keep).write(path("m.gguf"));
  const GgufFile file = GgufFile::open(path("m.gguf"));
  expect_error(ErrorKind::BadArgument, "there is no recipe 'Q7'", [] { find_quant_recipe("Q7"); });
  expect_error(ErrorKind::BadArgument, "is the file that is read",
               [&] { quantize_gguf(file, path("m.gguf"), find_quant_recipe("Q8_0")); });
  QuantizeOptions dry;
  dry.dry_run = true;
  EXPECT_GT(quantize_gguf(file, path("none.gguf"), find_quant_recipe("Q4_K_M"), dry).changed, 0u);
  EXPECT_FALSE(std::filesystem::exists(path("none.gguf")));
}

}  // namespace
}  // namespace tl
