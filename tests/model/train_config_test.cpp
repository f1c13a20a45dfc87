// The file that a training run is described in.
#include "tl/model/train_config.h"

#include "model/gguf_files.h"

namespace tl {
namespace {

using namespace test;

const std::string kMinimal = R"({"train": "t.txt", "tokenizer": "v.gguf", "output": "out/m.gguf",
  "architecture": {"layers": 2, "width": 32, "heads": 4, "ffn": 64, "context": 16}})";

TrainConfig read(const std::string& json, const TrainOverrides& overrides = {}) {
  const Folder folder;
  const std::string path = folder.file("train.json");
  save(path, json);
  return read_train_config(path, overrides);
}

void fails(ErrorKind kind, const TrainOverrides& overrides, const std::string& message) {
  expect_error(kind, message, [&] { read(kMinimal, overrides); });
}

TEST(TrainConfig, HasDefaultsForAllButDataAndSizes) {
  const TrainConfig config = read(kMinimal);
  EXPECT_EQ(config.train, std::vector<std::string>{"t.txt"});
  EXPECT_TRUE(config.held_out.empty());
  EXPECT_EQ(config.sizes.kv_heads, 4);
  EXPECT_EQ(config.output_type, "Q8_0");
  EXPECT_EQ(config.beta2, 0.95);
  EXPECT_EQ(config.work_stem(), "out/m");
}

TEST(TrainConfig, TheOneInTheTreeIsRead) {
  const TrainConfig config = read_train_config(std::string(TL_SOURCE) + "/models/nano/train.json");
  EXPECT_EQ(config.sizes.vocabulary, 2048);
  EXPECT_EQ(config.sizes.kv_heads, 2);
  EXPECT_EQ(config.steps, 12000);
  EXPECT_EQ(config.rate, 2e-3);
  EXPECT_EQ(config.work_stem(), "build/nano/tallow-nano");
  EXPECT_EQ(config.metadata.name, "tallow-nano");
}

TEST(TrainConfig, KeysMayBeGivenInstead) {
  const TrainConfig config = read(kMinimal, {{"architecture.layers", "5"},
                                             {"train", "[\"a\", \"b\"]"},
                                             {"work", "elsewhere"},
                                             {"betas", "[0.8, 0.9]"},
                                             {"precision", "bf16"},
                                             {"loss_on", "assistant"},
                                             {"schedule", "constant"},
                                             {"metadata.name", "n"}});
  EXPECT_EQ(config.sizes.layers, 5);
  EXPECT_EQ(config.train, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config.work_stem(), "elsewhere/m");
  EXPECT_EQ(config.beta1, 0.8);
  EXPECT_EQ(config.precision, TrainPrecision::Bf16);
  EXPECT_EQ(config.loss_on, LossOn::Assistant);
  EXPECT_FALSE(config.cosine);
  EXPECT_EQ(config.metadata.name, "n");
}

TEST(TrainConfig, UnknownKeysAreNamed) {
  fails(ErrorKind::BadFile, {{"bacth", "3"}},
        "there is no key 'bacth' here; did you mean 'batch'?");
  fails(ErrorKind::BadFile, {{"architecture.dropout", "0.1"}},
        "architecture: there is no key 'dropout' here");
  fails(ErrorKind::BadFile, {{"metadata.x", "1"}}, "metadata: there is no key 'x' here");
  fails(ErrorKind::BadArgument, {{"steps.x.", "1"}, {"steps", "1"}}, "'steps.x.' is no key");
}

TEST(TrainConfig, MissingAndMistypedKeysAreNamed) {
  expect_error(ErrorKind::BadFile, "there is no key 'tokenizer'",
               [] { read(R"({"train": "t", "output": "o", "architecture": {}})"); });
  expect_error(ErrorKind::BadFile, "architecture: there is no key 'layers'", [] {
    read(R"({"train": "t", "output": "o", "tokenizer": "v", "architecture": {}})");
  });
  expect_error(ErrorKind::BadFile, "is no JSON", [] { read("{"); });
  expect_error(ErrorKind::BadFile, "is not one object", [] { read("[]"); });
  fails(ErrorKind::BadFile, {{"steps", "many"}}, "key 'steps' is \"many\", not a whole number");
  fails(ErrorKind::BadFile, {{"train", "3"}}, "key 'train' is 3, not the name of a file");
  fails(ErrorKind::BadFile, {{"betas", "[0.9]"}}, "key 'betas' has 1 numbers, not 2");
  fails(ErrorKind::BadFile, {{"precision", "f8"}},
        "'precision' is 'f8', not one of f32, tf32, bf16");
}

TEST(TrainConfig, ValuesThatMakeNoRunAreNamed) {
  const auto refuses = [](const std::string& key, const std::string& value,
                          const std::string& text) {
    fails(ErrorKind::BadArgument, {{key, value}}, text);
  };
  refuses("architecture.heads", "5",
          "key 'architecture.heads' is 5, which does not divide the width, 32");
  refuses("architecture.kv_heads", "3",
          "key 'architecture.kv_heads' is 3, which does not divide the heads, 4");
  refuses("architecture.heads", "32", "heads of 1 elements; they turn in pairs");
  refuses("architecture.layers", "0", "key 'architecture.layers' is 0, and at least 1 is needed");
  refuses("architecture.rope_base", "-1",
          "key 'architecture.rope_base' is -1, not a number above 0");
  refuses("train", "[]", "key 'train' names no file");
  refuses("batch", "0", "key 'batch' is 0");
  refuses("warmup", "1000", "key 'warmup' is 1000, and there are only 1000 steps");
  refuses("betas", "[0.9, 1]", "key 'betas' is 1, not from 0 to below 1");
  refuses("least_rate", "1", "more than the rate");
  refuses("output_type", "Q9", "there is no recipe 'Q9'");
}

}  // namespace
}  // namespace tl
