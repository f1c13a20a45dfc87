// The cndl_ names of older programs: other spellings of the language's own functions.
#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>

#include "lang/builtins/library.h"
#include "lang/builtins/model_objects.h"
#include "tl/model/gguf.h"
#include "tl/model/weights.h"
#include "tl/ops/copy.h"
#include "tl/ops/norm.h"
#include "tl/ops/rope.h"
#include "tl/tensor/safetensors.h"

namespace tl::lang {

namespace {

// The name without "cndl_" is the function's own.
Value call_same(Context& context, Args& args) {
  std::span<Value> given = args.from(0);
  while (!given.empty() && given.back().is(Kind::Missing)) given = given.first(given.size() - 1);
  return call_builtin(context, args.name().substr(5), given);
}

Value call_transpose(Context& context, Args& args) {
  return args.tensor(context, 0).transpose(args.integer(1), args.integer(2));
}

std::optional<tl::Tensor> like(const Context& context, const Args& args, std::size_t i,
                               const tl::Tensor& x) {
  if (!args.has(i)) return std::nullopt;
  return args.tensor(context, i, x.dtype());
}

Value call_layer_norm(Context& context, Args& args) {
  const tl::Tensor x = args.tensor(context, 0);
  const std::int64_t size = args.integer(1);
  if (x.rank() == 0 || x.dim(-1) != size) args.bad_value(1, "the size of the last dimension");
  return layer_norm(x, like(context, args, 2, x), like(context, args, 3, x), args.real(4));
}

Value call_rms_norm(Context& context, Args& args) {
  const tl::Tensor x = args.tensor(context, 0);
  return rms_norm(x, like(context, args, 1, x), args.real(2));
}

Value call_embedding(Context& context, Args& args) {
  const std::array<Value, 2> swapped = {args[1], args[0]};
  return call_builtin(context, "embedding", swapped);
}

// (..., positions, heads, size): element i turns with element i + size / 2.
Value call_rope(Context& context, Args& args) {
  const tl::Tensor x = args.tensor(context, 0);
  const std::int64_t offset = args.integer(1);
  const double base = args.real(2);
  if (x.rank() < 3 || x.dim(-1) % 2 != 0 || x.dim(-1) == 0) {
    args.bad(0, "a tensor of shape [..., positions, heads, size] with an even size");
  }
  if (!(base > 0)) args.bad_value(2, "a base above 0");
  const std::int64_t positions = x.dim(-3), half = x.dim(-1) / 2;
  std::vector<float> cosines, sines;
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double turn = static_cast<double>(p + offset) *
                          std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
      cosines.push_back(static_cast<float>(std::cos(turn)));
      sines.push_back(static_cast<float>(std::sin(turn)));
    }
  }
  const auto table = [&](const std::vector<float>& values) {
    return to_dtype(tl::Tensor::from(values, {positions, half}, x.device()), x.dtype());
  };
  const tl::Tensor rows = reshape(x, {-1, positions, x.dim(-2), x.dim(-1)});
  return reshape(rope_thd(rows, table(cosines), table(sines)), x.shape());
}

// ---- files

Value call_load_safetensor(Context& context, Args& args) {
  const std::string& path = args.string(0);
  const std::string& name = args.string(1);
  expect_file(path);
  const Safetensors file(path);
  if (!file.has(name)) {
    throw invalid_operation("Tensor '", name, "' not found in ", path,
                            did_you_mean(name, file.names()));
  }
  const tl::Tensor tensor = to_dtype(file.load(name, context.device), DType::F32);
  if (context.verbose) {
    *context.out << "Loaded tensor '" << name << "' from " << path
                 << " (f32, shape: " << bracketed(tensor.shape()) << ")\n";
  }
  return tensor;
}

Value call_save_safetensor(Context& context, Args& args) {
  const std::string& path = args.string(1);
  const std::string& name = args.string(2);
  write_safetensors(path, {{name, args.tensor(context, 0)}});
  if (context.verbose) *context.out << "Saved tensor '" << name << "' to " << path << '\n';
  return {};
}

Value call_list_safetensors(Context& context, Args& args) {
  const std::string& path = args.string(0);
  expect_file(path);
  const Safetensors file(path);
  const std::vector<std::string> names = file.names();
  std::ostream& out = *context.out;
  out << "Tensors in " << path << ":\n  Total: " << names.size() << " tensors\n\n";
  for (const std::string& name : names) {
    const Safetensors::Entry& entry = file.entry(name);
    out << "  - " << name << " : " << entry.stored << ' ' << bracketed(entry.shape) << '\n';
  }
  return {};
}

Value call_load_gguf_tensor(Context& context, Args& args) {
  const std::string& path = args.string(0);
  const std::string& name = args.string(1);
  expect_file(path);
  const GgufFile file = GgufFile::open(path);
  if (file.find(name) == nullptr) {
    std::vector<std::string> names;
    for (const GgufTensorInfo& each : file.tensors()) names.push_back(each.name);
    throw invalid_operation("Tensor '", name, "' not found in ", path, did_you_mean(name, names));
  }
  const tl::Tensor tensor = load_tensor(file, name, context.device).dequantize();
  if (context.verbose) {
    *context.out << "Loaded tensor '" << name << "' from " << path
                 << " (f32, shape: " << bracketed(tensor.shape()) << ")\n";
  }
  return tensor;
}

Value call_list_gguf_tensors(Context& context, Args& args) {
  const std::string& path = args.string(0);
  expect_file(path);
  const GgufFile file = GgufFile::open(path);
  std::vector<const GgufTensorInfo*> all;
  for (const GgufTensorInfo& each : file.tensors()) all.push_back(&each);
  std::sort(all.begin(), all.end(), [](auto* a, auto* b) { return a->name < b->name; });
  std::ostream& out = *context.out;
  out << "Tensors in " << path << ":\n  GGUF version: " << file.version()
      << "\n  Total: " << all.size() << " tensors\n\n";
  for (const GgufTensorInfo* each : all) {
    out << "  - " << each->name << " : ";
    if (each->type) {
      out << *each->type;
    } else {
      out << "type " << each->code;
    }
    out << ' ' << bracketed(each->shape) << '\n';
  }
  return {};
}

Value call_save_model(Context& context, Args& args) {
  const ModelData& model = model_argument(args, 0);
  const std::string& path = args.string(1);
  NamedTensors tensors;
  for (const std::string& name : model.names()) {
    tensors.emplace(name, to_tensor(context, args.name(), model.tensor(name)));
  }
  write_safetensors(path, tensors);
  if (context.verbose) {
    *context.out << "✓ Saved model to " << path << " (" << tensors.size() << " tensors)\n";
  }
  return {};
}

Value call_load_model(Context& context, Args& args) {
  const std::string& path = args.string(0);
  expect_file(path);
  std::map<std::string, tl::Tensor, std::less<>> tensors;
  for (const auto& [name, tensor] : Safetensors(path).load_all(context.device)) {
    tensors.emplace(name, to_dtype(tensor, DType::F32));
  }
  ModelPointer data = ModelData::of(path, std::move(tensors));
  if (context.verbose) {
    *context.out << "✓ Loaded model (f32, " << data->names().size() << " tensors)\n";
  }
  return make<ModelObject>(std::move(data));
}

}  // namespace

BuiltinRows candle_builtins() {
  static const Builtin rows[] = {
      {"cndl_matmul", "candle", "(a, b)", "As matmul.", call_same},
      {"cndl_transpose", "candle", "(x, a, b)", "Two dimensions exchanged.", call_transpose},
      {"cndl_reshape", "candle", "(x, shape)", "As reshape.", call_same},
      {"cndl_softmax", "candle", "(x, dim = none)", "As softmax.", call_same},
      {"cndl_log_softmax", "candle", "(x, dim = none)", "As log_softmax.", call_same},
      {"cndl_gelu", "candle", "(x)", "As gelu.", call_same},
      {"cndl_silu", "candle", "(x)", "As silu.", call_same},
      {"cndl_relu", "candle", "(x)", "As relu.", call_same},
      {"cndl_tanh", "candle", "(x)", "As tanh.", call_same},
      {"cndl_layer_norm", "candle", "(x, size, weight = none, bias = none, eps = 1e-5)",
       "The norm over the last dimension, whose size is given.", call_layer_norm},
      {"cndl_rms_norm", "candle", "(x, weight = none, eps = 1e-5)", "As rms_norm.", call_rms_norm},
      {"cndl_embedding", "candle", "(ids, table)", "As embedding, with the ids first.",
       call_embedding},
      {"cndl_rope", "candle", "(x, offset, theta = 10000.0)",
       "Rotary embedding that turns element i with element i + half of a head.", call_rope},
      {"cndl_load_safetensor", "candle", "(path, name)", "A tensor of a .safetensors file as f32.",
       call_load_safetensor},
      {"cndl_save_safetensor", "candle", "(tensor, path, name)",
       "Writes a .safetensors file of one tensor.", call_save_safetensor},
      {"cndl_list_safetensors", "candle", "(path)", "Shows the tensors of a .safetensors file.",
       call_list_safetensors},
      {"cndl_load_gguf_tensor", "candle", "(path, name)", "A tensor of a .gguf file as f32.",
       call_load_gguf_tensor},
      {"cndl_list_gguf_tensors", "candle", "(path)", "Shows the tensors of a .gguf file.",
       call_list_gguf_tensors},
      {"cndl_save_model_safetensor", "candle", "(model, path)",
       "Writes all tensors of a model into a .safetensors file.", call_save_model},
      {"cndl_load_model_safetensor", "candle", "(path)",
       "A model of a .safetensors file, its tensors as f32.", call_load_model},
  };
  return rows;
}

}  // namespace tl::lang
