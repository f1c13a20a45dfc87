// Decoders on every device: the same logits however tokens are cut into passes and whoever else is
// in them, caches as values, and every architecture as on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/gguf_files.h"
#include "model/logits.h"
#include "model/random_model.h"
#include "model/reference_models.h"
#include "support/on_every_device.h"
#include "tl/base/error.h"
#include "tl/model/quantize.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

using test::logits_of;
using test::reference_model;

constexpr std::int64_t kVocabulary = 96;

// Models of a few layers: 46 of them make twenty times as much of every rounding.
std::vector<std::string> architectures() {
  const auto json = nlohmann::json::parse(
      test::contents((test::source_folder() / "tests/model/data/logits.json").string()));
  std::vector<std::string> names;
  for (const auto& each : json["cases"]) {
    if (each["name"] != "gemma2-46-layers") names.push_back(each["name"]);
  }
  return names;
}

// So many tokens, none like its neighbours.
std::vector<TokenId> tokens(std::int64_t count, std::int64_t seed = 1) {
  std::vector<TokenId> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<TokenId>((i * i * 7 + i * 31 + seed * 13) % kVocabulary));
  }
  return out;
}

std::vector<TokenId> slice(const std::vector<TokenId>& all, std::ptrdiff_t first,
                           std::ptrdiff_t last) {
  return {all.begin() + first, all.begin() + last};
}

class Decoders : public test::OnEveryDevice {
 protected:
  static Decoder open(const std::string& path, const Device& device,
                      const DecoderOptions& options = {.context = 256}) {
    const GgufFile file = GgufFile::open(path);
    return {file, ModelWeights::load(file, device), options};
  }
  Decoder decoder(const std::string& name, const DecoderOptions& options = {.context = 256}) const {
    return open(reference_model(name), device(), options);
  }
  // On the CPU only the order of sums differs, and with it which half a key becomes; on GPUs
  // attention is of halves. Logits are about 1.
  double bound() const { return device().is_cpu() ? 1e-3 : 4e-3; }
  void expect_near(const std::vector<float>& a, const std::vector<float>& b,
                   const std::string& what) const {
    EXPECT_LE(test::apart(a, b).most, bound()) << what;
  }
};
TL_ON_EVERY_DEVICE(Decoders);

// A token of the smallest model after a prompt of two, with weights of every kind that the step has
// kernels for: what an emulator has time for. Logits are about 4; products with quantised weights
// round what they multiply, in blocks of 32 numbers on GPUs and of up to 256 on CPUs.
TEST_P(Decoders, SweepOverTypesOfWeights) {
  if (device().is_cpu()) GTEST_SKIP() << "it is what the others are compared with";
  struct Case {
    QType type;
    double most, rms;
  };
  const test::Folder folder;
  for (const Case& each : {Case{QType::F32, 0.01, 0.003},
                           {QType::F16, 0.02, 0.005},
                           {QType::Q8_0, 0.4, 0.12},
                           {QType::Q4_0, 0.4, 0.12},
                           {QType::Q4_K, 0.8, 0.25},
                           {QType::Q6_K, 0.8, 0.25}}) {
    const std::string path = folder.file(join(each.type, ".gguf"));
    test::write_random_model(
        path,
        {.layers = 1, .width = 256, .heads = 4, .kv_heads = 2, .hidden = 256, .type = each.type});
    const auto logits = [&](const Device& where) {
      const Decoder model = open(path, where, {.context = 32});
      KvCache cache = model.new_cache();
      std::vector<float> out = model.forward(tokens(2), cache).to_vector<float>();
      const std::vector<float> next = model.forward(tokens(1, 5), cache).to_vector<float>();
      out.insert(out.end(), next.begin(), next.end());
      return out;
    };
    const test::Apart far = test::apart(logits(device()), logits(Device::cpu()));
    RecordProperty(join(each.type), join(far.most, " rms ", far.rms));
    EXPECT_LE(far.most, each.most) << each.type;
    EXPECT_LE(far.rms, each.rms) << each.type;
  }
}

TEST_P(Decoders, TokensMayComeInPassesOfAnySize) {
  const std::vector<TokenId> all = tokens(150);
  for (const std::string name : {"llama", "llama-window"}) {
    const std::vector<float> at_once = logits_of(decoder(name), all);
    for (const std::int64_t chunk : {7, 64}) {
      const Decoder model = decoder(name, {.context = 256, .chunk = chunk});
      expect_near(logits_of(model, all), at_once, join("chunks of ", chunk));
    }
    for (const std::size_t pass : {1, 33, 149}) {
      expect_near(logits_of(decoder(name), all, pass), at_once, join("passes of ", pass));
    }
  }
}

TEST_P(Decoders, LastLogitsAreTheLastOfAll) {
  const Decoder model = decoder("llama");
  const std::vector<TokenId> all = tokens(20);
  KvCache one = model.new_cache(), other = model.new_cache();
  const std::vector<float> rows = model.forward(all, one, LogitRows::All).to_vector<float>();
  const Tensor last = model.forward(all, other);
  EXPECT_EQ(last.shape(), (Shape{1, kVocabulary}));
  expect_near(last.to_vector<float>(), {rows.end() - kVocabulary, rows.end()}, "last");
}

TEST_P(Decoders, HiddenStatesAreTheSameInPassesOfAnySizeAndFillTheCache) {
  const std::vector<TokenId> all = tokens(90);
  for (const std::string name : {"llama", "gemma2"}) {
    const Decoder model = decoder(name);
    KvCache whole = model.new_cache();
    const Tensor hidden = model.hidden(all, whole);
    EXPECT_EQ(hidden.shape(), (Shape{90, model.config().width})) << name;
    EXPECT_EQ(whole.length(), 90);
    KvCache parts = model.new_cache();
    model.hidden(slice(all, 0, 50), parts);
    const std::vector<float> last = model.hidden(slice(all, 50, 90), parts).to_vector<float>();
    float most = 1;
    for (const float x : last) most = std::max(most, std::abs(x));
    const std::vector<float> same = contiguous(hidden.narrow(0, 50, 40)).to_vector<float>();
    EXPECT_LE(test::apart(same, last).most, bound() * most) << name;
    KvCache other = model.new_cache();
    model.forward(all, other);
    const std::vector<TokenId> next = {3};
    expect_near(model.forward(next, whole).to_vector<float>(),
                model.forward(next, other).to_vector<float>(), name);
  }
  KvCache cache = decoder("llama").new_cache();
  EXPECT_THROW(decoder("llama").hidden(std::vector<TokenId>{-1}, cache), Error);
  EXPECT_EQ(cache.length(), 0);
}

TEST_P(Decoders, SeveralSequencesAreAsOneByOne) {
  const Decoder model = decoder("llama");
  const std::vector<std::vector<TokenId>> first = {tokens(70, 1), tokens(1, 2), tokens(9, 3)};
  const std::vector<std::vector<TokenId>> second = {tokens(1, 4), tokens(80, 5), tokens(1, 6)};
  std::vector<KvCache> alone(3), together(3);
  std::vector<float> expected, found;
  for (std::size_t i = 0; i < 3; ++i) alone[i] = together[i] = model.new_cache();
  for (const auto& round : {first, second}) {
    std::vector<std::uint32_t> ids;
    std::vector<SequencePart> parts;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto count = std::ssize(round[i]);
      parts.push_back({&together[i], count, i == 2 ? LogitRows::All : LogitRows::Last});
      for (const TokenId token : round[i]) ids.push_back(static_cast<std::uint32_t>(token));
      const auto rows = model.forward(round[i], alone[i], parts.back().rows).to_vector<float>();
      expected.insert(expected.end(), rows.begin(), rows.end());
    }
    const auto rows = model.forward(parts, Tensor::from(ids, device())).to_vector<float>();
    found.insert(found.end(), rows.begin(), rows.end());
  }
  expect_near(found, expected, "together");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(together[i].length(), alone[i].length());
}

TEST_P(Decoders, ForksGoTheirOwnWays) {
  const Decoder model = decoder("llama");
  const std::vector<TokenId> all = tokens(90, 1), other = tokens(30, 2);
  const std::vector<float> expected = logits_of(model, all);
  KvCache cache = model.new_cache();
  logits_of(model, slice(all, 0, 70), 512, cache);
  KvCache fork = cache.fork();
  // In turns, in the middle of a block that was shared.
  const auto forked = logits_of(model, other, 512, fork);
  const auto rest = logits_of(model, slice(all, 70, 90), 1, cache);
  expect_near(rest, {expected.begin() + 70 * kVocabulary, expected.end()}, "the first");
  std::vector<TokenId> both = slice(all, 0, 70);
  both.insert(both.end(), other.begin(), other.end());
  const auto straight = logits_of(model, both);
  expect_near(forked, {straight.begin() + 70 * kVocabulary, straight.end()}, "its fork");
}

TEST_P(Decoders, WhatIsTruncatedIsForgotten) {
  const Decoder model = decoder("llama");
  const std::vector<TokenId> all = tokens(90, 1);
  const std::vector<float> expected = logits_of(model, all);
  KvCache cache = model.new_cache();
  logits_of(model, slice(all, 0, 66), 512, cache);
  logits_of(model, tokens(70, 3), 512, cache);
  cache.truncate(66);
  const auto rest = logits_of(model, slice(all, 66, 90), 512, cache);
  expect_near(rest, {expected.begin() + 66 * kVocabulary, expected.end()}, "after truncate()");
}

// Norms of heads, windows, caps, biases and every way to scale positions.
TEST_P(Decoders, EveryArchitectureIsAsOnTheCpu) {
  if (device().is_cpu()) GTEST_SKIP() << "the CPU's are tested against llama.cpp's";
  const std::vector<TokenId> all = tokens(26);
  for (const std::string& name : architectures()) {
    const auto expected = logits_of(
        open(reference_model(name), Device::cpu(), {.cache = KvType::F32, .context = 256}), all);
    for (const std::size_t pass : {1, 9, 26}) {
      expect_near(logits_of(decoder(name), all, pass), expected, join(name, " by ", pass));
    }
  }
}

// Weights in blocks: a single token goes another way through the model than many. Both round each
// vector to bytes or halves, as the CPU does: errors of some hundredths.
TEST_P(Decoders, TokensOneByOneAreAsManyAtOnceInEveryFormat) {
  const test::Folder folder;
  for (const std::string& name : architectures()) {
    const std::vector<TokenId> all = tokens(name == "llama-window" ? 70 : 16);
    for (const std::string_view recipe : {"F16", "Q8_0"}) {
      const std::string path = folder.file(join(name, recipe, ".gguf"));
      quantize_gguf(GgufFile::open(reference_model(name)), path, find_quant_recipe(recipe));
      const Decoder model = open(path, device());
      const auto at_once = logits_of(model, all);
      const test::Apart far = test::apart(logits_of(model, all, 1), at_once);
      RecordProperty(join(name, recipe), join(far.most, " rms ", far.rms));
      const bool halves = recipe == "F16";
      EXPECT_LE(far.most, halves ? 0.02 : 0.15) << name << ' ' << recipe;
      EXPECT_LE(far.rms, halves ? 0.004 : 0.03) << name << ' ' << recipe;
    }
  }
}

TEST_P(Decoders, AFullCacheIsLeftAsItWas) {
  const Decoder model = decoder("llama", {.context = 70});
  KvCache cache = model.new_cache();
  const std::vector<TokenId> all = tokens(68);
  logits_of(model, all, 512, cache);
  for (const std::int64_t count : {3, 100}) {
    test::expect_error(ErrorKind::BadArgument, "no room",
                       [&] { model.forward(tokens(count), cache); });
    EXPECT_EQ(cache.length(), 68);
  }
  const auto rest = logits_of(model, tokens(2), 512, cache);
  EXPECT_EQ(rest.size(), static_cast<std::size_t>(2 * kVocabulary));
  EXPECT_EQ(cache.room(), 0);
}

}  // namespace
}  // namespace tl
