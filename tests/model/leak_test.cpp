// A model is loaded, its layers are put into collections of all kinds, and all of it is dropped in
// every order: the device has back every byte.
//
// TL_TEST_MODEL names a model to do it with, e.g. one of 2 GB on a real GPU; without it a small one
// is made.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/weight_files.h"
#include "support/on_every_device.h"
#include "tl/base/text.h"
#include "tl/model/weight_cache.h"
#include "tl/model/weights.h"
#include "tl/runtime/report.h"

namespace tl {
namespace {

class Leaks : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    device().synchronize();
    device().trim();
    before_ = device().pool();
    const std::string given(environment("TL_TEST_MODEL"));
    path_ = given.empty() ? test::write_model(folder_.file("m.gguf"),
                                              {.layers = 8, .rows = 512, .columns = 512})
                          : given;
  }
  void expect_baseline() const {
    const PoolStatistics now = device().pool();
    EXPECT_EQ(now.live_bytes, before_.live_bytes) << memory_report().text();
    EXPECT_EQ(now.live_blocks, before_.live_blocks);
    EXPECT_EQ(now.mapped_bytes, before_.mapped_bytes);
    EXPECT_EQ(now.mapped_blocks, before_.mapped_blocks);
    EXPECT_EQ(now.allocations - before_.allocations, now.returns - before_.returns);
    EXPECT_EQ(now.failures, before_.failures);
    EXPECT_EQ(device().pinned_pool().live_blocks, 0U);
  }
  std::uint64_t in_use() const {
    const PoolStatistics now = device().pool();
    return now.live_bytes - before_.live_bytes + now.mapped_bytes - before_.mapped_bytes;
  }

  test::Folder folder_;
  std::string path_;
  PoolStatistics before_;
};
TL_ON_EVERY_DEVICE(Leaks);

TEST_P(Leaks, EveryByteComesBackFromCollections) {
  for (const bool copy : {false, true}) {
    LoadOptions options;
    options.copy = copy;
    const GgufFile file = GgufFile::open(path_);
    const std::uint64_t bytes = file.tensor_bytes();
    ModelWeights model = ModelWeights::load(file, device(), options);
    EXPECT_EQ(in_use(), bytes);

    std::vector<QTensor> list;
    std::map<std::string, QTensor> by_name;
    std::unordered_map<int, std::vector<QTensor>> layers;
    WeightCache cache(bytes / 2);
    for (const auto& [name, tensor] : model.tensors()) {
      list.push_back(tensor);
      by_name[name] = tensor;
      if (name.starts_with("blk.")) layers[std::stoi(name.substr(4))].push_back(tensor);
      cache.get(name, [&tensor = tensor] { return tensor; });
    }
    EXPECT_EQ(in_use(), bytes) << "taking tensors out must not copy them";
    const WeightCacheStatistics cached = cache.statistics();
    EXPECT_LE(cached.bytes, bytes / 2);
    EXPECT_EQ(cached.bytes + cached.held_bytes, bytes);

    model = ModelWeights();
    EXPECT_EQ(in_use(), bytes);
    list.clear();
    by_name.clear();
    layers.erase(0);
    layers.clear();
    EXPECT_EQ(in_use(), cached.bytes);
    EXPECT_EQ(cache.statistics().held_bytes, 0U);
    cache.clear();
    expect_baseline();
  }
  device().trim();
  EXPECT_EQ(device().pool().reserved_bytes, before_.reserved_bytes);
}

TEST_P(Leaks, LoadingAgainAndAgainTakesNoMore) {
  const GgufFile file = GgufFile::open(path_);
  LoadOptions options;
  options.copy = true;
  std::uint64_t reserved = 0;
  for (int i = 0; i < 5; ++i) {
    const ModelWeights model = ModelWeights::load(file, device(), options);
    if (i == 0) reserved = device().pool().reserved_bytes;
    EXPECT_EQ(device().pool().reserved_bytes, reserved) << "load " << i;
  }
  expect_baseline();
}

TEST_P(Leaks, LayersDroppedByManyThreadsComeBack) {
  const GgufFile file = GgufFile::open(path_);
  for (const bool copy : {false, true}) {
    LoadOptions options;
    options.copy = copy;
    ModelWeights model = ModelWeights::load(file, device(), options);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([mine = model]() mutable { mine = ModelWeights(); });
    }
    model = ModelWeights();
    for (auto& thread : threads) thread.join();
    expect_baseline();
  }
}

}  // namespace
}  // namespace tl
