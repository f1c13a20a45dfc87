#include "tl/model/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "model/weight_files.h"
#include "support/faulty_driver.h"
#include "support/on_every_device.h"
#include "support/sim_guard.h"
#include "tl/runtime/read_into.h"
#include "tl/runtime/report.h"

namespace tl {
namespace {

using test::expect_error;
using test::write_model;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class Weights : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    device().synchronize();
    device().trim();
    before_ = device().pool();
  }
  void TearDown() override {
    const PoolStatistics after = device().pool();
    EXPECT_EQ(after.live_bytes, before_.live_bytes);
    EXPECT_EQ(after.mapped_bytes, before_.mapped_bytes);
    EXPECT_EQ(after.mapped_blocks, before_.mapped_blocks);
    EXPECT_EQ(after.allocations - before_.allocations, after.returns - before_.returns);
    EXPECT_EQ(device().pinned_pool().live_blocks, 0U);
    EXPECT_TRUE(device().stream().finished());
  }
  std::string path(const std::string& name) const { return folder_.file(name); }
  GgufFile model(const test::ModelShape& shape = {}) const {
    return GgufFile::open(write_model(path("m.gguf"), shape));
  }
  static void expect_bytes(const GgufFile& file, const std::string& name, const QTensor& tensor) {
    const GgufTensorInfo& info = file.tensor(name);
    EXPECT_EQ(tensor.type(), info.known_type()) << name;
    EXPECT_EQ(tensor.shape(), info.shape) << name;
    const auto bytes = file.bytes(info);
    EXPECT_EQ(tensor.to_blocks(), std::vector<std::byte>(bytes.begin(), bytes.end())) << name;
  }
  static void expect_bytes(const GgufFile& file, const ModelWeights& weights) {
    EXPECT_EQ(weights.size_bytes(), file.tensor_bytes());
    ASSERT_EQ(weights.tensors().size(), file.tensors().size());
    for (const auto& [name, tensor] : weights.tensors()) expect_bytes(file, name, tensor);
  }

  test::Folder folder_;
  PoolStatistics before_;
};
TL_ON_EVERY_DEVICE(Weights);

LoadOptions copying() { return {.choose = {}, .progress = {}, .threads = 0, .copy = true}; }

TEST_P(Weights, AreTheBytesOfTheFileOnTheDevice) {
  const GgufFile file = model();
  for (const bool copy : {false, true}) {
    LoadOptions options;
    options.copy = copy;
    const ModelWeights weights = ModelWeights::load(file, device(), options);
    EXPECT_EQ(weights.get("blk.1.attn_q.weight").location(), device().location());
    expect_bytes(file, weights);
  }
}

TEST_P(Weights, RealModelsLoadWhole) {
  if (test::data_folder().empty()) GTEST_SKIP() << "no shared/data/gguf near the sources";
  for (const char* name : {"tiny-llama-f32.gguf", "tiny-llama-q4_k_m.gguf"}) {
    const GgufFile file = GgufFile::open(test::data_folder() / name);
    expect_bytes(file, ModelWeights::load(file, device()));
  }
}

TEST_P(Weights, PartsOfAModelAreOne) {
  GgufWriter::Options options;
  options.max_part_tensors = 4;
  const std::string first = write_model(path("m.gguf"), {}, options);
  const GgufFile file = GgufFile::open(first);
  ASSERT_EQ(file.parts().size(), 3U);
  expect_bytes(file, ModelWeights::load(file, device()));
}

TEST_P(Weights, FilesInMemoryAreCopied) {
  const std::string text = test::contents(write_model(path("m.gguf"), {}));
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(text.data()),
                                     reinterpret_cast<const std::byte*>(text.data()) + text.size());
  const GgufFile file = GgufFile::from_memory(bytes, "in memory");
  const ModelWeights weights = ModelWeights::load(file, device());
  expect_bytes(file, weights);
  EXPECT_EQ(Device::cpu().pool().mapped_blocks, 0U);
}

TEST_P(Weights, OutliveTheFileTheyCameFrom) {
  ModelWeights weights;
  std::vector<std::byte> expected;
  {
    const GgufFile file = model();
    const auto bytes = file.bytes(file.tensor("blk.2.ffn_up.weight"));
    expected.assign(bytes.begin(), bytes.end());
    weights = ModelWeights::load(file, device());
  }
  const QTensor kept = weights.get("blk.2.ffn_up.weight");
  weights = ModelWeights();
  std::filesystem::remove(path("m.gguf"));
  EXPECT_EQ(kept.to_blocks(), expected);
}

// ---- names

TEST_P(Weights, AreFoundByNameScopeAndShape) {
  const ModelWeights weights = ModelWeights::load(model(), device());
  EXPECT_EQ(weights.find("none"), nullptr);
  EXPECT_EQ(&weights.get("token_embd.weight", {24, 256}), weights.find("token_embd.weight"));
  const WeightScope layer = weights.under("blk.1");
  EXPECT_EQ(&layer.get("attn_q.weight", {24, 256}), weights.find("blk.1.attn_q.weight"));
  EXPECT_EQ(layer.find("attn_q.bias"), nullptr);
  EXPECT_EQ(layer.full("x"), "blk.1.x");
  EXPECT_EQ(&weights.under("blk").under("2").get("attn_norm.weight"),
            weights.find("blk.2.attn_norm.weight"));
  EXPECT_FALSE(layer.empty());
  EXPECT_TRUE(weights.under("blk.10").empty());
  EXPECT_TRUE(weights.under("bl").empty());
}

TEST_P(Weights, ATiedTensorIsShared) {
  const ModelWeights weights = ModelWeights::load(model(), device());
  const QTensor output = weights.get_any({"output.weight", "token_embd.weight"});
  EXPECT_TRUE(output.shares_memory_with(weights.get("token_embd.weight")));
  expect_error(ErrorKind::BadFile, "has no tensor 'output.weight'",
               [&] { weights.get_any({"output.weight", "lm_head.weight"}); });
  expect_error(ErrorKind::BadArgument, "no names", [&] { weights.get_any({}); });
}

TEST_P(Weights, WhatIsMissingIsNamedWithWhatThereIs) {
  const GgufFile file = model();
  const ModelWeights weights = ModelWeights::load(file, device());
  const std::string start = path("m.gguf") + ": has no tensor ";
  expect_error(ErrorKind::BadFile,
               start +
                   "'blk.1.attn_v.weight'; of its 11 some are 'blk.1.attn_norm.weight', "
                   "'blk.1.attn_q.weight', 'blk.1.ffn_up.weight'",
               [&] { weights.get("blk.1.attn_v.weight"); });
  expect_error(ErrorKind::BadFile, start + "'blk.7.ffn_up.weight'; of its 11 some are 'blk.0.",
               [&] { weights.under("blk.7").get("ffn_up.weight"); });
  expect_error(ErrorKind::BadFile, start + "'x'; of its 11 some are 'blk.0.attn_norm.weight'",
               [&] { weights.get("x"); });
  expect_error(ErrorKind::BadFile, start + "''; of its 11 some are", [&] { weights.get(""); });
  expect_error(ErrorKind::ShapeMismatch,
               "tensor 'blk.0.attn_q.weight' has shape (24, 256), and (24, 128) is needed",
               [&] { weights.get("blk.0.attn_q.weight", {24, 128}); });
  expect_error(ErrorKind::BadFile, "weights: has no tensor 'x'; of its 0 some are none",
               [] { ModelWeights().get("x"); });
}

TEST_P(Weights, CanBeChosen) {
  LoadOptions options;
  options.choose = [](const GgufTensorInfo& info) { return info.name.starts_with("blk.2."); };
  const GgufFile file = model();
  const ModelWeights weights = ModelWeights::load(file, device(), options);
  EXPECT_EQ(weights.tensors().size(), 3U);
  expect_bytes(file, "blk.2.ffn_up.weight", weights.get("blk.2.ffn_up.weight"));
  expect_error(ErrorKind::BadFile, "'token_embd.weight' was not among those to be loaded",
               [&] { weights.get("token_embd.weight"); });
  options.choose = [](const GgufTensorInfo&) { return false; };
  EXPECT_TRUE(ModelWeights::load(file, device(), options).tensors().empty());
}

TEST_P(Weights, OneTensorCanBeLoadedAlone) {
  const GgufFile file = model();
  expect_bytes(file, "blk.0.attn_q.weight", load_tensor(file, "blk.0.attn_q.weight", device()));
  expect_error(ErrorKind::BadFile, "has no tensor 'x'", [&] { load_tensor(file, "x", device()); });
}

// ---- on the way

TEST_P(Weights, ProgressCountsBytesAndNamesTensors) {
  const GgufFile file = model({.layers = 2, .rows = 2048, .columns = 512});
  std::vector<std::uint64_t> done;
  LoadOptions options = copying();
  options.progress = [&](const LoadProgress& now) {
    EXPECT_NE(file.find(now.tensor), nullptr);
    EXPECT_EQ(now.total, file.tensor_bytes());
    done.push_back(now.done);
  };
  for (const bool copy : {true, false}) {
    done.clear();
    options.copy = copy;
    ModelWeights::load(file, device(), options);
    ASSERT_FALSE(done.empty());
    EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
    EXPECT_EQ(done.back(), file.tensor_bytes());
  }
}

TEST_P(Weights, ThrowingFromTheCallbackCancels) {
  const GgufFile file = model({.layers = 2, .rows = 2048, .columns = 512});
  for (const bool copy : {true, false}) {
    LoadOptions options = copying();
    options.copy = copy;
    options.progress = [](const LoadProgress&) { throw std::runtime_error("cancelled"); };
    EXPECT_THROW(ModelWeights::load(file, device(), options), std::runtime_error);
  }
}

TEST_P(Weights, AFileCutShortIsAnErrorThatNamesTheTensor) {
  const GgufFile file = model();
  const GgufTensorInfo& last = file.tensor("output_norm.weight");
  std::filesystem::resize_file(path("m.gguf"), last.offset + 100);
  for (const bool copy : {false, true}) {
    LoadOptions options;
    options.copy = copy;
    expect_error(ErrorKind::BadFile, "tensor 'output_norm.weight': read file: ", [&] {
      ModelWeights::load(file, device(), options);
    });
  }
}

TEST_P(Weights, ADeviceWithoutRoomNamesTheTensorAndTheBytes) {
  const GgufFile file = model({.layers = 1, .rows = 2048, .columns = 512});
  test::FaultyDriver driver(device().kind());
  driver.fail_from(1, 1000);
  try {
    ModelWeights::load(file, device(), copying());
    FAIL() << "there was room";
  } catch (const OutOfMemory& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.requested, file.tensor("token_embd.weight").size_bytes());
    EXPECT_GT(error.free, 0U);
    EXPECT_NE(text.find("load " + path("m.gguf") +
                        ": tensor 'token_embd.weight' of 576 KiB, after 0 B of 3.63 MiB: " +
                        device().text() + " has no room for 576 KiB: "),
              std::string::npos)
        << text;
  }
  driver.fail_from(0);
  expect_bytes(file, ModelWeights::load(file, device(), copying()));
}

TEST_P(Weights, AtEveryFailedAllocationNothingIsLost) {
  const GgufFile file = model({.layers = 2, .rows = 1024, .columns = 512});
  test::FaultyDriver driver(device().kind());
  int failures = 0;
  for (int n = 1; n < 40; ++n) {
    device().trim();
    driver.fail_from(n, 1000);
    try {
      ModelWeights::load(file, device(), copying());
    } catch (const Error&) {
      ++failures;
    }
    const bool was_reached = driver.reached();
    driver.fail_from(0);
    EXPECT_EQ(device().pool().live_bytes, before_.live_bytes) << n;
    if (!was_reached) break;
  }
  EXPECT_GT(failures, 0);
  expect_bytes(file, ModelWeights::load(file, device()));
}

TEST_P(Weights, UnknownTypesAreRefusedUnlessLeftOut) {
  test::Raw raw;
  raw.start(2, 0).tensor("a", {4}, 0, 0).tensor("old", {4}, 4, 32).pad().data(64);
  test::save(path("old.gguf"), raw.text());
  const GgufFile file = GgufFile::open(path("old.gguf"));
  expect_error(ErrorKind::Unsupported, "'old' has the type code 4",
               [&] { ModelWeights::load(file, device()); });
  LoadOptions options;
  options.choose = [](const GgufTensorInfo& info) { return info.type.has_value(); };
  EXPECT_EQ(ModelWeights::load(file, device(), options).tensors().size(), 1U);
}

TEST_P(Weights, ManyThreadsOfReadersAreRefused) {
  LoadOptions options = copying();
  options.threads = ReadOptions::kMostThreads + 1;
  expect_error(ErrorKind::BadArgument, "threads",
               [&] { ModelWeights::load(model(), device(), options); });
}

// ---- memory

TEST_P(Weights, TakeLittleMoreThanTheirBytes) {
  // Matrices of 9.06 MiB, which alone would take 10 each.
  const GgufFile file = model({.layers = 6, .rows = 9280, .columns = 512});
  const ModelWeights weights = ModelWeights::load(file, device(), copying());
  const PoolStatistics pool = device().pool();
  const std::uint64_t live = pool.live_bytes - before_.live_bytes;
  EXPECT_EQ(live, file.tensor_bytes());
  EXPECT_GT(live, 64 * kMiB);
  const std::uint64_t taken = pool.reserved_bytes - before_.reserved_bytes;
  EXPECT_LE(taken,
            live + live / 50 + 2 * kMiB);  // 2 % and the one segment that small tensors share
  EXPECT_LE(device().pinned_pool().peak_bytes, 32 * kMiB);
}

TEST_P(Weights, GoBackToTheDriverWhenUnloaded) {
  const GgufFile file = model({.layers = 2, .rows = 2048, .columns = 512});
  {
    const ModelWeights weights = ModelWeights::load(file, device(), copying());
    EXPECT_EQ(device().pool().live_bytes - before_.live_bytes, file.tensor_bytes());
  }
  EXPECT_EQ(device().pool().live_bytes, before_.live_bytes);
  EXPECT_GT(device().trim(), file.tensor_bytes());
  EXPECT_EQ(device().pool().reserved_bytes, before_.reserved_bytes);
}

TEST_P(Weights, TheReportSaysWhoseTheyAre) {
  const ModelWeights weights = ModelWeights::load(model(), device());
  EXPECT_NE(memory_report().text().find("by weights of m.gguf"), std::string::npos)
      << memory_report().text();
}

// ---- where they are mapped

class MappedWeights : public Weights {
 protected:
  void SetUp() override {
    Weights::SetUp();
    if (!device().is_cpu()) GTEST_SKIP() << "only the CPU can use a file in place";
  }
};
TL_ON_EVERY_DEVICE(MappedWeights);

TEST_P(MappedWeights, AreNotCopied) {
  const GgufFile file = model();
  const ModelWeights weights = ModelWeights::load(file, device());
  for (const auto& [name, tensor] : weights.tensors()) {
    EXPECT_EQ(tensor.memory().data(), file.bytes(file.tensor(name)).data());
  }
  const PoolStatistics now = device().pool();
  EXPECT_EQ(now.allocations, before_.allocations);
  EXPECT_EQ(now.mapped_bytes - before_.mapped_bytes, file.tensor_bytes());
}

TEST_P(MappedWeights, ComputeAsCopiesDo) {
  const GgufFile file = model();
  const ModelWeights weights = ModelWeights::load(file, device());
  const ModelWeights copies = ModelWeights::load(file, device(), copying());
  for (const auto& [name, tensor] : weights.tensors()) {
    const std::vector<float> a = tensor.dequantize().to_vector<float>();
    const std::vector<float> b = copies.get(name).dequantize().to_vector<float>();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
      return x == y || (x != x && y != y);  // the bytes are any numbers, NaN among them
    })) << name;
  }
}

TEST_P(MappedWeights, ThoseThatLieCrookedAreCopied) {
  test::Raw raw;
  raw.start(1, 1).key("general.alignment", GgufType::U32).u32(1);
  raw.tensor("a", {4}, 0, raw.size() % 2 == 0 ? 1 : 0).pad(1).data(17);
  test::save(path("odd.gguf"), raw.text());
  const GgufFile file = GgufFile::open(path("odd.gguf"));
  const auto* place = file.bytes(file.tensor("a")).data();
  ASSERT_NE(reinterpret_cast<std::uintptr_t>(place) % 4, 0U);
  const ModelWeights weights = ModelWeights::load(file, device());
  EXPECT_NE(weights.get("a").memory().data(), place);
  expect_bytes(file, "a", weights.get("a"));
}

}  // namespace
}  // namespace tl
