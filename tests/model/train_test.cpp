// Whole runs of training: what they learn, that they go on where they stopped, and the file they
// write.
#include "tl/model/train.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/training_files.h"
#include "support/sim_guard.h"
#include "tl/grad/grad.h"
#include "tl/model/decoder.h"
#include "tl/ops/create.h"
#include "tl/ops/loss.h"

namespace tl {
namespace {

using namespace test;

class ModelTraining : public OnEveryDevice {
 protected:
  bool is_simulated() const { return !device().is_cpu() && !simulated_drivers().empty(); }
};
TL_ON_EVERY_DEVICE(ModelTraining);

std::vector<double> run_steps(Trainer& trainer, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) trainer.step();
  return trainer.losses();
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double bound) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], bound) << "loss " << i;
}

// ---- learning

TEST_P(ModelTraining, LearnsAShortTextByHeart) {
  const Folder folder;
  Trainer trainer(tiny_config(folder), device());
  EXPECT_EQ(trainer.train_text().documents, 3u);
  // Bytes are tokens: each document has one before it and one after.
  EXPECT_EQ(trainer.train_text().tokens, trainer.train_text().bytes + 6);
  const double before = trainer.evaluate().loss;
  EXPECT_NEAR(before, std::log(263.0), 0.2);  // nothing is known
  const std::vector<double> losses = run_steps(trainer, is_simulated() ? 4 : 150);
  EXPECT_NEAR(losses.front(), std::log(263.0), 0.2);
  EXPECT_LT(losses.back(), is_simulated() ? losses.front() - 0.2 : 0.3);
  const HeldOutLoss after = trainer.evaluate();
  EXPECT_LT(after.loss, before - 0.2);
  EXPECT_EQ(after.tokens, 20u);  // 19 bytes and the end
  EXPECT_NEAR(after.bits_per_byte, after.loss / std::log(2.0) * 20 / 19, 1e-9);
}

TEST_P(ModelTraining, HasTheSameLossesEverywhere) {
  const Folder folder;
  const TrainConfig config = tiny_config(folder);
  Trainer here(config, device()), there(config, Device::cpu());
  expect_near(run_steps(here, 5), run_steps(there, 5), 1e-3);
}

TEST_P(ModelTraining, InShorterProductsIsNearlyTheSame) {
  const Folder folder;
  TrainConfig config = tiny_config(folder);
  Trainer whole(config, device());
  const int steps = is_simulated() ? 2 : 5;
  const std::vector<double> expected = run_steps(whole, steps);
  for (const TrainPrecision precision : {TrainPrecision::Bf16, TrainPrecision::Tf32}) {
    config.precision = precision;
    Trainer shorter(config, device());
    expect_near(run_steps(shorter, steps), expected, 0.05);
  }
}

TEST_P(ModelTraining, AllMemoryComesBack) {
  const Folder folder;
  const std::uint64_t before = device().pool().live_bytes;
  {
    Trainer trainer(tiny_config(folder), device());
    run_steps(trainer, 2);
    trainer.save();
    trainer.evaluate();
    EXPECT_GT(device().pool().live_bytes, before);
  }
  device().synchronize();
  EXPECT_EQ(device().pool().live_bytes, before);
}

TEST_P(ModelTraining, StepsThatAreDoneHoldNoMoreMemory) {
  const Folder folder;
  Trainer trainer(tiny_config(folder), device());
  run_steps(trainer, 2);
  const std::uint64_t after_two = device().pool().live_bytes;
  run_steps(trainer, 2);
  EXPECT_EQ(device().pool().live_bytes, after_two);
}

// ---- stopping and going on

TEST_P(ModelTraining, GoesOnAsIfItHadNeverStopped) {
  const Folder folder;
  TrainConfig config = tiny_config(folder);
  const int first_part = is_simulated() ? 1 : 5, second_part = is_simulated() ? 2 : 7;
  config.steps = 12;
  Trainer whole(config, device());
  const std::vector<double> expected = run_steps(whole, first_part + second_part);
  {
    Trainer first(config, device());
    run_steps(first, first_part);
    first.save();
  }
  Trainer second(config, device());
  second.resume();
  EXPECT_EQ(second.steps(), first_part);
  EXPECT_TRUE(second.train_text().from_cache);
  EXPECT_FALSE(whole.train_text().from_cache);
  expect_near(run_steps(second, second_part), {expected.begin() + first_part, expected.end()},
              1e-5);
  EXPECT_NEAR(second.evaluate().loss, whole.evaluate().loss, 1e-5);
}

TEST(ModelTrainingState, SaysWhatDoesNotGoTogether) {
  const Folder folder;
  const TrainConfig config = tiny_config(folder);
  const Device cpu = Device::cpu();
  expect_error(ErrorKind::BadFile, "tiny.state: there is no state to resume from",
               [&] { Trainer(config, cpu).resume(); });
  {
    Trainer trainer(config, cpu);
    trainer.step();
    trainer.save();
  }
  const auto refuses = [&](const TrainConfig& other, const std::string& text) {
    expect_error(ErrorKind::BadArgument, text, [&] { Trainer(other, cpu).resume(); });
  };
  TrainConfig other = config;
  other.sizes.ffn = 96;
  refuses(other, "was saved with 'architecture.ffn' of 64, and now it is 96");
  other = config;
  other.seed = 2;
  refuses(other, "was saved with 'seed' of 1, and now it is 2");
  other = config;
  save(folder.file("other.txt"), "another text\n");
  other.train = {folder.file("other.txt")};
  refuses(other, "was saved with other data");
  other = config;
  chat_vocabulary("<|stop|>").write(folder.file("other.gguf"));
  other.tokenizer = folder.file("other.gguf");
  refuses(other, "was saved with another vocabulary than that of " + other.tokenizer);
  save(folder.file("tiny.state"), "nothing");
  expect_error(ErrorKind::BadFile, "tiny.state", [&] { Trainer(config, cpu).resume(); });
}

TEST_P(ModelTraining, ALossThatIsNoNumberNamesItsStepAndIsNotSaved) {
  const Folder folder;
  TrainConfig config = tiny_config(folder);
  config.steps = 20;
  config.warmup = 0;
  Trainer trainer(config, device());
  run_steps(trainer, 2);
  trainer.save();
  const std::string good = contents(trainer.state_path());
  config.rate = 1e30;  // from here on it bursts
  config.clip = 0;
  Trainer wild(config, device());
  wild.resume();
  EXPECT_EQ(wild.steps(), 2);
  const auto burst = [&] {
    for (int i = 0; i < 4; ++i) wild.step();
    wild.save();
  };
  expect_error(ErrorKind::BadArgument, "The state of step 2 is kept", burst);
  expect_error(ErrorKind::BadArgument, "the loss of step ", [&] { wild.losses(); });
  EXPECT_EQ(contents(trainer.state_path()), good);
}

// ---- the file

// The trainer's logits and those of the decoder that reads its file.
void expect_same_logits(const TrainConfig& config, const Device& device, double bound) {
  Trainer trainer(config, device);
  run_steps(trainer, 2);
  trainer.write_model();
  const std::vector<TokenId> tokens = {1, 119, 107, 104, 35, 102, 100, 119, 35, 118, 100, 119};
  const auto count = static_cast<std::int64_t>(tokens.size());
  const NoHistory none;
  const std::vector<float> trained =
      trainer.model()
          .logits(trainer.model().parameters(), Tensor::from(tokens, {1, count}, device))
          .to_vector<float>();
  const GgufFile file = GgufFile::open(config.output);
  const Decoder decoder(file, ModelWeights::load(file, device), {.cache = KvType::F32});
  EXPECT_EQ(decoder.config().vocabulary, 263);
  EXPECT_EQ(decoder.context(), config.sizes.context);
  KvCache cache = decoder.new_cache();
  const std::vector<float> read = decoder.forward(tokens, cache, LogitRows::All).to_vector<float>();
  ASSERT_EQ(read.size(), trained.size());
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < read.size(); ++i) {
    worst = std::max(worst, static_cast<double>(std::abs(read[i] - trained[i])));
    largest = std::max(largest, static_cast<double>(std::abs(read[i])));
  }
  EXPECT_LT(worst, bound);
  EXPECT_GT(largest, 0.1);  // there is something to compare
}

TEST_P(ModelTraining, TheDecoderComputesWhatWasTrained) {
  const Folder folder;
  TrainConfig config = tiny_config(folder);
  expect_same_logits(config, device(), 1e-4);
  config.sizes.tied_embeddings = false;
  config.sizes.kv_heads = 1;
  config.sizes.rope_base = 500;
  config.sizes.norm_eps = 1e-3;
  expect_same_logits(config, device(), 1e-4);
}

TEST(ModelTrainingFile, HasTypesAndWordsOfTheConfiguration) {
  const Folder folder;
  TrainConfig config = tiny_config(folder);
  config.output_type = "Q8_0";
  config.metadata = {.name = "tiny",
                     .author = "someone",
                     .license = "Apache-2.0",
                     .description = "",
                     .chat_template = "{{ messages }}"};
  Trainer trainer(config, Device::cpu());
  trainer.write_model();
  const GgufFile file = GgufFile::open(config.output);
  EXPECT_EQ(file.get<std::string>("general.name"), "tiny");
  EXPECT_EQ(file.get<std::string>("general.license"), "Apache-2.0");
  EXPECT_EQ(file.find_value("general.description"), nullptr);
  EXPECT_EQ(file.get<std::string>("tokenizer.chat_template"), "{{ messages }}");
  EXPECT_TRUE(file.get<bool>("tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(file.tensor("blk.1.ffn_up.weight").known_type(), QType::Q8_0);
  EXPECT_EQ(file.tensor("blk.1.ffn_norm.weight").known_type(), QType::F32);
  EXPECT_EQ(file.tensor("blk.1.ffn_gate.weight").shape, (Shape{64, 32}));
  EXPECT_EQ(file.find("output.weight"), nullptr);  // tied
  const Tokenizer tokenizer = Tokenizer::from_gguf(file);
  EXPECT_EQ(tokenizer.size(), 263u);
  EXPECT_EQ(tokenizer.encode("ab"), (Ids{1, byte_id('a'), byte_id('b')}));
}

}  // namespace
}  // namespace tl
