// What a training run is told: sizes of the model, data, and how to learn.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tl {

// As the keys of general.architecture = llama name them: docs/training.md.
struct ModelSizes {
  std::int64_t vocabulary = 0;  // the tokenizer's; 0: not known yet
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;
  std::int64_t context = 0;
  double rope_base = 10000;
  double norm_eps = 1e-5;
  bool tied_embeddings = true;  // the embedding is the output too

  friend bool operator==(const ModelSizes&, const ModelSizes&) = default;
};

// Of the products. Parameters, their gradients and sums are F32 with each.
enum class TrainPrecision : std::uint8_t { F32, Tf32, Bf16 };
// Which tokens the loss is of: with Assistant, in documents that have an assistant's turns, those.
enum class LossOn : std::uint8_t { All, Assistant };

struct ModelMetadata {
  std::string name, author, license, description;
  std::string chat_template;  // Jinja; empty: the tokenizer's
};

struct TrainConfig {
  std::vector<std::string> train, held_out;  // text files
  std::string tokenizer;                     // a GGUF file
  std::string output;                        // the GGUF file that is written
  std::string output_type = "Q8_0";
  std::string work;  // the folder of state, tokens and log; empty: that of the output
  ModelSizes sizes;
  std::int64_t batch = 8;
  std::int64_t steps = 1000;
  double rate = 1e-3;
  double least_rate = 0;  // at the end
  std::int64_t warmup = 0;
  bool cosine = true;  // else the rate stays as it is after the warm-up
  double weight_decay = 0.1;
  double clip = 1;  // of the length of all gradients; 0: never
  double beta1 = 0.9, beta2 = 0.95;
  std::uint64_t seed = 1;
  TrainPrecision precision = TrainPrecision::F32;
  LossOn loss_on = LossOn::All;
  std::string assistant_mark = "<|assistant|>";  // the token that begins an assistant's turn
  std::int64_t print_every = 20;
  std::int64_t save_every = 500;      // 0: only at the end
  std::int64_t evaluate_every = 500;  // 0: only at the end
  ModelMetadata metadata;

  // FOLDER/NAME, where the output is NAME.gguf: files of the run begin with it.
  std::string work_stem() const;
};

// A key as a path with dots, "architecture.layers", and a value in JSON; a text needs no quotes.
using TrainOverrides = std::vector<std::pair<std::string, std::string>>;

// Throws BadFile, naming the file and the key, for what is missing, of another type or not known,
// and BadArgument for values that make no sense.
TrainConfig read_train_config(const std::string& path, const TrainOverrides& overrides = {});
// Throws BadArgument naming the key. read_train_config() has called it.
void check_train_config(const TrainConfig& config);
void check_model_sizes(const ModelSizes& sizes);  // the vocabulary may be 0

}  // namespace tl
