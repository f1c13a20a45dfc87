// Training a language model of the Llama family from nothing, and writing it as a GGUF file.
//
//   const TrainConfig config = read_train_config("train.json");
//   Trainer trainer(config, Device::best_available());
//   while (trainer.steps() < config.steps) trainer.step();
//   trainer.write_model();                          // config.output: tl chat runs it
//
// Steps do not wait for the device; losses() does. docs/training.md has the keys of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tl/model/quantize.h"
#include "tl/model/tokenizer.h"
#include "tl/model/train_config.h"
#include "tl/tensor/tensor.h"

namespace tl {

// The parameters of a decoder and what it computes of them, as Decoder does of its file.
class TrainableModel {
 public:
  // Weights are small random numbers of the seed, the same on every device. Throws BadArgument for
  // sizes that make no model.
  TrainableModel(const ModelSizes& sizes, std::uint64_t seed, const Device& device);

  const ModelSizes& sizes() const noexcept { return sizes_; }
  Device device() const { return parameters_.front().device(); }
  // F32. Those that weight decay is for come first.
  std::span<Tensor> parameters() noexcept { return parameters_; }
  std::span<const Tensor> parameters() const noexcept { return parameters_; }
  std::span<const std::string> names() const noexcept { return names_; }
  std::size_t decayed() const noexcept { return decayed_; }  // how many come first
  std::int64_t parameter_count() const noexcept;

  // ids (batch, time) of an index dtype, time at most the context: (batch * time, vocabulary) in
  // F32. The parameters are given, so that they may be followed.
  Tensor logits(std::span<const Tensor> parameters, const Tensor& ids,
                TrainPrecision precision = TrainPrecision::F32) const;

  // A GGUF file with the vocabulary of `tokenizer`: its keys tokenizer.*.
  void write(const std::string& path, const QuantRecipe& recipe, const GgufFile& tokenizer,
             const ModelMetadata& metadata = {}) const;

 private:
  struct LayerPlaces {  // in parameters_
    std::size_t attention_norm, query, key, value, output, feed_forward_norm, gate_up, down;
  };
  void plan();
  void fill(std::uint64_t seed, const Device& device);
  Tensor attend(std::span<const Tensor> p, const LayerPlaces& at, const Tensor& x,
                TrainPrecision precision) const;

  ModelSizes sizes_;
  std::vector<Tensor> parameters_;
  std::vector<std::string> names_;
  std::vector<Shape> shapes_;
  std::vector<double> deviations_;  // of the first numbers; 0: they are ones
  std::size_t decayed_ = 0;
  std::size_t embedding_ = 0, output_norm_ = 0, output_ = 0;
  std::vector<LayerPlaces> layers_;
  Tensor cosines_, sines_;
};

// What was read of one set of files.
struct TrainText {
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;   // of the documents
  std::uint64_t tokens = 0;  // with those that begin and end documents
  std::uint64_t rows = 0;    // of as many tokens as the context has
  bool from_cache = false;   // tokenised by an earlier run
};

struct HeldOutLoss {
  double loss = 0;           // of a token, in nats
  double bits_per_byte = 0;  // of the text that the tokens stand for; special tokens have none
  std::uint64_t tokens = 0;  // that the loss is of
};

class Trainer {
 public:
  // Reads and tokenises the data, or takes what an earlier run made of it. Throws BadFile for what
  // cannot be read or has no documents, BadArgument for what makes no model; each names the file or
  // the key.
  Trainer(const TrainConfig& config, const Device& device);
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  const TrainConfig& config() const noexcept;
  const TrainableModel& model() const noexcept;
  const Tokenizer& tokenizer() const noexcept;
  const TrainText& train_text() const noexcept;
  const TrainText& held_out_text() const noexcept;

  std::int64_t steps() const noexcept;  // that were done, with those before a resume
  double rate() const;                  // of the next step
  std::uint64_t tokens_per_step() const noexcept;
  void step();
  // The losses of the steps since it was last called, oldest first; waits for the device. Throws
  // BadArgument with the step when one is no number, and from then on nothing is saved.
  std::vector<double> losses();
  HeldOutLoss evaluate();  // all zeros without held-out text

  // Parameters, optimiser, step and place in the data, so that resume() goes on as if nothing had
  // been. The file is complete or not there. save() throws as losses() does, and keeps what it
  // reads for losses().
  std::string state_path() const;
  void save();
  void resume();  // throws BadFile or BadArgument, and says what does not go together
  void write_model() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tl
