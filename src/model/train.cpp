#include "tl/model/train.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "model/train_data.h"
#include "runtime/digest.h"
#include "tl/base/error.h"
#include "tl/grad/grad.h"
#include "tl/grad/optimizer.h"
#include "tl/model/gguf_writer.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"
#include "tl/ops/loss.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"
#include "tl/runtime/label.h"
#include "tl/tensor/safetensors.h"

namespace tl {

namespace {

using training_data::RowOrder;
using training_data::Rows;

constexpr std::string_view kWhere = "train";
constexpr std::string_view kStateForm = "tallow training 1";
constexpr std::int64_t kOrderSteps = 64;  // for so many steps the order goes to the device at once

std::string vocabulary_digest(const GgufFile& tokenizer) {
  GgufWriter writer;
  for (const GgufEntry& entry : tokenizer.metadata()) {
    if (entry.key.starts_with("tokenizer.ggml.")) writer.add(entry.key, entry.value);
  }
  return hex_digest(writer.metadata_file());
}

// Scales gradients so that all of them together are at most so long; gives their length before.
// All of it stays on the device.
Tensor clip_on_device(std::span<Tensor> gradients, double most) {
  std::vector<Tensor> lengths;
  lengths.reserve(gradients.size());
  for (const Tensor& each : gradients) lengths.push_back(norm_all(each));
  const Tensor length = norm_all(stack(lengths, 0));
  if (most > 0) {
    const Tensor scale = minimum(div(most, add(length, 1e-12)), 1);
    for (Tensor& each : gradients) each = mul(each, scale);
  }
  return length;
}

ModelSizes with_vocabulary(const TrainConfig& config, const Tokenizer& tokenizer) {
  ModelSizes sizes = config.sizes;
  const auto size = static_cast<std::int64_t>(tokenizer.size());
  if (sizes.vocabulary != 0 && sizes.vocabulary != size) {
    throw Error(ErrorKind::BadArgument, kWhere, "key 'architecture.vocabulary' is ",
                sizes.vocabulary, ", and ", config.tokenizer, " has ", size, " tokens");
  }
  sizes.vocabulary = size;
  return sizes;
}

// The sizes as the state has them, in the order of the configuration.
std::vector<std::pair<std::string, std::string>> named_sizes(const ModelSizes& s) {
  return {{"architecture.vocabulary", join(s.vocabulary)},
          {"architecture.layers", join(s.layers)},
          {"architecture.width", join(s.width)},
          {"architecture.heads", join(s.heads)},
          {"architecture.kv_heads", join(s.kv_heads)},
          {"architecture.ffn", join(s.ffn)},
          {"architecture.context", join(s.context)},
          {"architecture.rope_base", join(s.rope_base)},
          {"architecture.norm_eps", join(s.norm_eps)},
          {"architecture.tied_embeddings", s.tied_embeddings ? "true" : "false"}};
}

std::unique_ptr<Optimizer> make_optimizer(const TrainConfig& config, double decay) {
  return make_adamw({.rate = config.rate,
                     .beta1 = config.beta1,
                     .beta2 = config.beta2,
                     .eps = 1e-8,
                     .weight_decay = decay,
                     .decoupled = true,
                     .amsgrad = false});
}

// Where the first file of a folder is going to be.
void make_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    throw Error(ErrorKind::BadFile, folder.string(), "cannot be made: ", failed.message());
  }
}

struct Numbers {  // of a step, as they are on the device
  std::int64_t step;
  Tensor loss, length;
};

}  // namespace

struct Trainer::State {
  State(const TrainConfig& given, const Device& on)
      : config(given),
        device(on),
        tokenizer_file(GgufFile::open(config.tokenizer)),
        tokenizer(Tokenizer::from_gguf(tokenizer_file)),
        vocabulary(vocabulary_digest(tokenizer_file)),
        model(with_vocabulary(config, tokenizer), config.seed, device),
        decayed(make_optimizer(config, config.weight_decay)),
        plain(make_optimizer(config, 0)) {
    if (config.precision != TrainPrecision::F32) set_allow_tf32(device, true);
    make_folder_of(config.work_stem());
    make_folder_of(config.output);
    const LabelScope label("training data");
    const auto rows_of = [&](const std::vector<std::string>& paths, std::string_view part,
                             TrainText& text) {
      const auto stream = training_data::tokenise(paths, tokenizer, vocabulary,
                                                  join(config.work_stem(), '.', part, ".tokens"));
      Rows rows = training_data::pack_rows(stream, tokenizer, config, device);
      text = stream.text;
      text.rows = static_cast<std::uint64_t>(rows.ids.dim(0));
      if (part == "train") data_digest = stream.digest;
      return rows;
    };
    train = rows_of(config.train, "train", train_text);
    if (!config.held_out.empty()) held_out = rows_of(config.held_out, "held-out", held_out_text);
    order.emplace(config.seed, train.ids.dim(0));
  }
  ~State() {
    if (config.precision != TrainPrecision::F32) set_allow_tf32(device, before_tf32);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  double rate_at(std::int64_t step) const;
  Tensor next_rows();
  Tensor loss(std::span<const Tensor> parameters, const Tensor& ids, const Tensor& targets,
              std::string_view reduction) const;
  void read_numbers();

  TrainConfig config;
  Device device;
  bool before_tf32 = allow_tf32(device);
  GgufFile tokenizer_file;
  Tokenizer tokenizer;
  std::string vocabulary, data_digest;
  TrainableModel model;
  std::unique_ptr<Optimizer> decayed, plain;
  TrainText train_text, held_out_text;
  Rows train, held_out;
  std::optional<RowOrder> order;
  Tensor upcoming;                 // rows of the next steps
  std::int64_t upcoming_left = 0;  // of its rows
  std::int64_t steps = 0;
  std::int64_t position = 0;  // rows that came
  std::vector<Numbers> unread;
  std::vector<double> read;  // losses that losses() has not given yet
  std::int64_t saved = -1;   // the step of the state's file
};

double Trainer::State::rate_at(std::int64_t step) const {
  const Schedule schedule{
      .kind = config.cosine ? Schedule::Kind::Cosine : Schedule::Kind::Constant,
      .period = static_cast<double>(std::max<std::int64_t>(1, config.steps - config.warmup)),
      .least = config.least_rate,
      .warmup = static_cast<double>(config.warmup)};
  return schedule.rate(config.rate, static_cast<double>(step));
}

// Their places, (batch), already on the device.
Tensor Trainer::State::next_rows() {
  if (upcoming_left == 0) {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < kOrderSteps * config.batch; ++i) {
      places.push_back(order->at(position + i));
    }
    upcoming = Tensor::from(places, device);
    upcoming_left = std::ssize(places);
  }
  Tensor rows = upcoming.narrow(0, upcoming.dim(0) - upcoming_left, config.batch);
  upcoming_left -= config.batch;
  position += config.batch;
  return rows;
}

Tensor Trainer::State::loss(std::span<const Tensor> parameters, const Tensor& ids,
                            const Tensor& targets, std::string_view reduction) const {
  const Tensor logits = model.logits(parameters, ids, config.precision);
  return cross_entropy(logits, reshape(targets, {targets.count()}), reduction);
}

// To the host. A loss that is no number ends the run before anything of it is saved.
void Trainer::State::read_numbers() {
  if (unread.empty()) return;
  std::vector<Tensor> all;
  for (const Numbers& each : unread) {
    all.push_back(reshape(each.loss, {1}));
    all.push_back(reshape(each.length, {1}));
  }
  const std::vector<float> values = cat(all, 0).to_vector<float>();
  for (std::size_t i = 0; i < unread.size(); ++i) {
    const bool is_number = std::isfinite(values[2 * i]) && std::isfinite(values[2 * i + 1]);
    if (is_number) {
      read.push_back(static_cast<double>(values[2 * i]));
      continue;
    }
    throw Error(ErrorKind::BadArgument, kWhere, "the loss of step ", unread[i].step, " is ",
                values[2 * i], " and its gradients have the length ", values[2 * i + 1],
                "; a smaller rate or a smaller clip may help. ",
                saved < 0 ? std::string("No state was saved")
                          : join("The state of step ", saved, " is kept"));
  }
  unread.clear();
}

// ---- the trainer

Trainer::Trainer(const TrainConfig& config, const Device& device) {
  check_train_config(config);
  state_ = std::make_unique<State>(config, device);
}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

const TrainConfig& Trainer::config() const noexcept { return state_->config; }
const TrainableModel& Trainer::model() const noexcept { return state_->model; }
const Tokenizer& Trainer::tokenizer() const noexcept { return state_->tokenizer; }
const TrainText& Trainer::train_text() const noexcept { return state_->train_text; }
const TrainText& Trainer::held_out_text() const noexcept { return state_->held_out_text; }
std::int64_t Trainer::steps() const noexcept { return state_->steps; }
double Trainer::rate() const { return state_->rate_at(state_->steps); }
std::uint64_t Trainer::tokens_per_step() const noexcept {
  return static_cast<std::uint64_t>(state_->config.batch * state_->config.sizes.context);
}

void Trainer::step() {
  State& s = *state_;
  const LabelScope label("training step");
  const Tensor places = s.next_rows();
  std::vector<Tensor> gradients;
  Tensor value;
  {
    std::vector<Tensor> followed;
    for (const Tensor& each : std::as_const(s.model).parameters()) followed.push_back(follow(each));
    const Tensor loss = s.loss(followed, index_select(s.train.ids, 0, places),
                               index_select(s.train.targets, 0, places), "mean");
    const Gradients found = backward(loss);
    for (const Tensor& each : followed) gradients.push_back(found.of(each));
    value = loss.detach();
  }
  const NoHistory none;
  const Tensor length = clip_on_device(gradients, s.config.clip);
  const std::span<Tensor> parameters = s.model.parameters();
  const std::size_t many = s.model.decayed();
  const double rate = s.rate_at(s.steps);
  s.decayed->set_rate(rate);
  s.plain->set_rate(rate);
  s.decayed->step(parameters.first(many), std::span(gradients).first(many));
  s.plain->step(parameters.subspan(many), std::span(gradients).subspan(many));
  s.unread.push_back({++s.steps, std::move(value), length});
}

std::vector<double> Trainer::losses() {
  state_->read_numbers();
  return std::exchange(state_->read, {});
}

HeldOutLoss Trainer::evaluate() {
  State& s = *state_;
  if (s.held_out.counted == 0) return {};
  const LabelScope label("evaluation");
  const NoHistory none;
  const std::int64_t rows = s.held_out.ids.dim(0);
  std::vector<Tensor> sums;
  for (std::int64_t first = 0; first < rows; first += s.config.batch) {
    const std::int64_t count = std::min(s.config.batch, rows - first);
    sums.push_back(
        reshape(s.loss(std::as_const(s.model).parameters(), s.held_out.ids.narrow(0, first, count),
                       s.held_out.targets.narrow(0, first, count), "sum"),
                {1}));
  }
  double total = 0;
  for (const float sum : cat(sums, 0).to_vector<float>()) total += static_cast<double>(sum);
  HeldOutLoss out;
  out.tokens = s.held_out.counted;
  out.loss = total / static_cast<double>(s.held_out.counted);
  if (s.held_out.bytes > 0) {
    out.bits_per_byte = total / std::log(2.0) / static_cast<double>(s.held_out.bytes);
  }
  return out;
}

// ---- the state

std::string Trainer::state_path() const { return state_->config.work_stem() + ".state"; }

void Trainer::save() {
  State& s = *state_;
  s.read_numbers();
  NamedTensors tensors;
  for (std::size_t i = 0; i < s.model.names().size(); ++i) {
    tensors.emplace("parameter." + s.model.names()[i], std::as_const(s.model).parameters()[i]);
  }
  for (const auto& [name, tensor] : s.decayed->state()) tensors.emplace("decayed." + name, tensor);
  for (const auto& [name, tensor] : s.plain->state()) tensors.emplace("plain." + name, tensor);
  tensors.emplace("position", Tensor::from({s.position}, {1}));
  tensors.emplace("steps", Tensor::from({s.steps}, {1}));
  Metadata said{{"form", std::string(kStateForm)},
                {"vocabulary", s.vocabulary},
                {"data", s.data_digest},
                {"seed", join(s.config.seed)}};
  for (const auto& [name, value] : named_sizes(s.model.sizes())) said.emplace(name, value);
  write_safetensors(state_path(), tensors, said);
  s.saved = s.steps;
}

void Trainer::resume() {
  State& s = *state_;
  const std::string path = state_path();
  if (!std::filesystem::exists(path)) {
    throw Error(ErrorKind::BadFile, path, "there is no state to resume from");
  }
  const Safetensors file(path);
  const auto said = [&](const std::string& key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (said("form") != kStateForm) {
    throw Error(ErrorKind::BadFile, path, "is not the state of a training run");
  }
  for (const auto& [key, value] : named_sizes(s.model.sizes())) {
    if (said(key) != value) {
      throw Error(ErrorKind::BadArgument, path, "was saved with '", key, "' of ", said(key),
                  ", and now it is ", value);
    }
  }
  if (said("vocabulary") != s.vocabulary) {
    throw Error(ErrorKind::BadArgument, path, "was saved with another vocabulary than that of ",
                s.config.tokenizer);
  }
  if (said("data") != s.data_digest) {
    throw Error(ErrorKind::BadArgument, path, "was saved with other data than that of 'train', ",
                s.config.train.front());
  }
  if (said("seed") != join(s.config.seed)) {
    throw Error(ErrorKind::BadArgument, path, "was saved with 'seed' of ", said("seed"),
                ", and now it is ", s.config.seed);
  }
  std::vector<Tensor> parameters;
  for (std::size_t i = 0; i < s.model.names().size(); ++i) {
    Tensor loaded = file.load("parameter." + s.model.names()[i], s.device);
    const Tensor& now = std::as_const(s.model).parameters()[i];
    if (loaded.shape() != now.shape() || loaded.dtype() != now.dtype()) {
      throw Error(ErrorKind::BadFile, path, s.model.names()[i], " has shape ", loaded.shape(),
                  ", not ", now.shape());
    }
    parameters.push_back(std::move(loaded));
  }
  std::map<std::string, Tensor> decayed, plain;
  for (const std::string& name : file.names()) {
    constexpr std::string_view kDecayed = "decayed.", kPlain = "plain.";
    if (name.starts_with(kDecayed)) decayed.emplace(name.substr(kDecayed.size()), file.load(name));
    if (name.starts_with(kPlain)) plain.emplace(name.substr(kPlain.size()), file.load(name));
  }
  s.decayed->load_state(decayed);
  s.plain->load_state(plain);
  s.position = file.load("position").item<std::int64_t>();
  s.steps = file.load("steps").item<std::int64_t>();
  if (s.position < 0 || s.steps < 0) throw Error(ErrorKind::BadFile, path, "counts are negative");
  std::move(parameters.begin(), parameters.end(), s.model.parameters().begin());
  s.saved = s.steps;
  s.upcoming_left = 0;
  s.unread.clear();
  s.read.clear();
}

void Trainer::write_model() const {
  const State& s = *state_;
  s.model.write(s.config.output, find_quant_recipe(s.config.output_type), s.tokenizer_file,
                s.config.metadata);
}

}  // namespace tl
