// Logits of every architecture against those of llama.cpp, for small models with random weights
// that tools/make_model.py writes when the tests are built. data/logits.md says how the reference
// was made.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "model/gguf_files.h"
#include "model/reference_models.h"
#include "tl/model/decoder.h"
#include "tl/ops/join.h"

namespace tl {
namespace {

// Weights, activations and the cache are f32 on both sides, and logits are about 1: what is left is
// the order of sums, and what layers make of it. 1.2e-5 was the most; a feature left out gives 0.5.
constexpr double kBound = 1e-4;

struct Case {
  std::string name;
  std::int64_t context = 0;
  std::vector<TokenId> prompt, then;
  std::vector<float> logits;  // (prompt and then, vocabulary)
};
std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

std::vector<Case> cases() {
  const std::string data = (test::source_folder() / "tests/model/data/logits.").string();
  const auto json = nlohmann::json::parse(test::contents(data + "json"));
  const std::string reference = test::contents(data + "bin");
  const std::size_t bytes = reference.size() / json["cases"].size();
  std::vector<Case> out;
  for (const auto& each : json["cases"]) {
    Case one{.name = each["name"],
             .context = each["context"],
             .prompt = json["prompt"],
             .then = json["then"],
             .logits = std::vector<float>(bytes / sizeof(float))};
    std::copy_n(reference.data() + out.size() * bytes, bytes,
                reinterpret_cast<char*>(one.logits.data()));
    out.push_back(std::move(one));
  }
  return out;
}

class Logits : public testing::TestWithParam<Case> {
 protected:
  Decoder decoder(std::int64_t chunk) const {
    const GgufFile file = GgufFile::open(test::reference_model(GetParam().name));
    return {file,
            ModelWeights::load(file, Device::cpu()),
            {.cache = KvType::F32, .context = GetParam().context, .chunk = chunk}};
  }
  // The largest difference from the reference.
  static double difference(const std::vector<Tensor>& rows) {
    const std::vector<float> logits = cat(rows, 0).to_vector<float>();
    const std::vector<float>& expected = GetParam().logits;
    EXPECT_EQ(logits.size(), expected.size());
    double most = 0;
    for (std::size_t i = 0; i < std::min(logits.size(), expected.size()); ++i) {
      const double apart = std::abs(static_cast<double>(logits[i]) - expected[i]);
      most = apart <= most ? most : apart;  // a NaN stays
    }
    return most;
  }
};

TEST_P(Logits, OfAPromptAndThenTokenByToken) {
  const Decoder model = decoder(512);
  KvCache cache = model.new_cache();
  std::vector<Tensor> rows{model.forward(GetParam().prompt, cache, LogitRows::All)};
  for (const TokenId token : GetParam().then) rows.push_back(model.forward({{token}}, cache));
  const double most = difference(rows);
  RecordProperty("largest_difference", join(most));
  EXPECT_LE(most, kBound);
}

TEST_P(Logits, InChunksThatAreShorterThanWindows) {
  const Decoder model = decoder(5);
  KvCache cache = model.new_cache();
  std::vector<TokenId> all = GetParam().prompt;
  all.insert(all.end(), GetParam().then.begin(), GetParam().then.end());
  EXPECT_LE(difference({model.forward(all, cache, LogitRows::All)}), kBound);
}

TEST_P(Logits, FromTheFirstTokenOneByOne) {
  const Decoder model = decoder(512);
  KvCache cache = model.new_cache();
  std::vector<Tensor> rows;
  for (const auto& tokens : {GetParam().prompt, GetParam().then}) {
    for (const TokenId token : tokens) rows.push_back(model.forward({{token}}, cache));
  }
  EXPECT_LE(difference(rows), kBound);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Logits, testing::ValuesIn(cases()), [](const auto& each) {
  std::string name = each.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace tl
