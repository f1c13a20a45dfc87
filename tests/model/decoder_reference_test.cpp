// Logits of the tiny models in shared/data against those of llama.cpp, on every device.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/gguf_files.h"
#include "model/logits.h"
#include "support/on_every_device.h"

namespace tl {
namespace {

// How far llama.cpp's own results are from the exact ones (README.md beside the models).
struct Known {
  std::string name;
  test::Apart peer;
};
const std::vector<Known>& known() {
  static const std::vector<Known> all = {{"f32", {0.020, 0.0032}}, {"f16", {0.028, 0.0041}},
                                         {"q8_0", {0.38, 0.075}},  {"q4_0", {0.36, 0.071}},
                                         {"q4_k_m", {0.60, 0.12}}, {"q6_k", {0.59, 0.11}}};
  return all;
}

struct Reference {
  std::vector<TokenId> prompt, all;
  std::vector<float> logits;  // of all
};

Reference exact(const std::string& name) {
  const std::string path = (test::data_folder() / join("tiny-llama-", name, ".exact.")).string();
  const auto run = nlohmann::json::parse(test::contents(path + "json"))["runs"][0];
  const std::string bytes = test::contents(path + "bin");
  Reference out{run["prompt"], run["prompt"], std::vector<float>(bytes.size() / sizeof(float))};
  for (const TokenId token : run["greedy"]) out.all.push_back(token);
  std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(out.logits.data()));
  return out;
}

class DecoderReference : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    if (test::data_folder().empty()) GTEST_SKIP() << "no shared/data/gguf near the sources";
  }
  Decoder decoder(const std::string& name, KvType cache) const {
    const std::string file = (test::data_folder() / join("tiny-llama-", name, ".gguf")).string();
    const GgufFile opened = GgufFile::open(file);
    return {opened, ModelWeights::load(opened, device()), {.cache = cache, .context = 256}};
  }
};
TL_ON_EVERY_DEVICE(DecoderReference);

// The prompt at once, then token by token: on a GPU both ways through the model. Others round
// elsewhere than llama.cpp does, so the largest of some thousand errors may be half as large again.
TEST_P(DecoderReference, LogitsAreAsNearAsOnesOfOtherPrograms) {
  for (const auto& [name, peer] : known()) {
    const Reference reference = exact(name);
    const Decoder model = decoder(name, KvType::F16);
    KvCache cache = model.new_cache();
    std::vector<float> logits = test::logits_of(model, reference.prompt, 512, cache);
    const std::vector<TokenId> then(reference.all.begin() + std::ssize(reference.prompt),
                                    reference.all.end());
    const auto rest = test::logits_of(model, then, 1, cache);
    logits.insert(logits.end(), rest.begin(), rest.end());
    const test::Apart far = test::apart(logits, reference.logits);
    RecordProperty(name, join(far.most, " rms ", far.rms));
    EXPECT_LE(far.most, 1.5 * peer.most) << name;
    EXPECT_LE(far.rms, 1.2 * peer.rms) << name;
    // All at once.
    const test::Apart together =
        test::apart(test::logits_of(model, reference.all), reference.logits);
    RecordProperty(name + "_together", join(together.most, " rms ", together.rms));
    EXPECT_LE(together.most, 1.5 * peer.most) << name;
    EXPECT_LE(together.rms, 1.2 * peer.rms) << name;
  }
}

TEST_P(DecoderReference, WithoutRoundingLogitsAreExact) {
  if (!device().is_cpu()) GTEST_SKIP() << "GPUs multiply halves";
  const Reference reference = exact("f32");
  const Decoder model = decoder("f32", KvType::F32);
  for (const std::size_t pass : {1, 5, 512}) {
    EXPECT_LE(test::apart(test::logits_of(model, reference.all, pass), reference.logits).most, 1e-4)
        << pass;
  }
}

// The wider the type of the cache, the nearer the result. The bound of q8_0 is what its bytes, one
// 254th of the largest of 32, make of a key and a value; the others follow from their bits.
TEST_P(DecoderReference, EveryTypeOfCacheIsNearTheTruth) {
  const Reference reference = exact("f32");
  for (const auto& [type, bound] : {std::pair{KvType::F32, 0.03},
                                    {KvType::F16, 0.03},
                                    {KvType::BF16, 0.16},
                                    {KvType::Q8, 0.32}}) {
    const Decoder model = decoder("f32", type);
    for (const std::size_t pass : {std::size_t{1}, reference.all.size()}) {
      const test::Apart far =
          test::apart(test::logits_of(model, reference.all, pass), reference.logits);
      RecordProperty(join(type, '_', pass), join(far.most, " rms ", far.rms));
      EXPECT_LE(far.most, bound) << type << ' ' << pass;
    }
  }
}

}  // namespace
}  // namespace tl
