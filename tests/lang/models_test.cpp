#include <fstream>
#include <nlohmann/json.hpp>

#include "lang/builtins/model_objects.h"
#include "library_context.h"
#include "tl/model/engine.h"
#include "tl/ops/reduce.h"
#include "tl/quant/qtensor.h"

namespace tl::lang::test {

namespace {

using Json = nlohmann::json;

// Runs on every device there is, with the models that come with the project.
class Models : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (data_folder().empty()) GTEST_SKIP() << "there are no models: shared/data is not here";
    context().device = Device::parse(GetParam());
    context().verbose = false;
  }
  void TearDown() override {
    context().device = Device::cpu();
    context().verbose = true;
    context().printed();
  }
  static std::string path(const std::string& name) { return (data_folder() / name).string(); }
  static Value load(const std::string& name) { return run("load_model", {path(name)}); }
  static Value property(const Value& of, std::string_view name) {
    return of.as<HostObject>().property(context(), name);
  }
  static Value at(const Value& of, const Value& place) {
    return of.as<HostObject>().index(context(), place);
  }
};

std::vector<std::string> devices() {
  std::vector<std::string> names;
  // One of a kind is enough.
  for (const Device& device : Device::all()) {
    if (device.index() == 0) names.push_back(device.text());
  }
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

Json read_json(const std::string& path) { return Json::parse(std::ifstream(path)); }

Value tokens(const std::vector<std::int32_t>& ids) { return make<TokensObject>(ids); }

}  // namespace

INSTANTIATE_TEST_SUITE_P(Devices, Models, testing::ValuesIn(devices()), test_name);

TEST_P(Models, LoadingTellsWhatWasLoaded) {
  context().verbose = true;
  const std::string file = path("tiny-llama-q8_0.gguf");
  const Value model = run("load_model", {file});
  EXPECT_EQ(context().printed(), "Loaded model from: " + file + " (f16)\n");
  EXPECT_EQ(text(model), "<ModelF16>");
  EXPECT_EQ(shown("type", {model}), "\"ModelF16\"");
  run("load_model_f16", {file});
  const std::string lines = context().printed();
  EXPECT_NE(lines.find("  Tensors: 21\n"), std::string::npos) << lines;
  EXPECT_TRUE(lines.ends_with("Loaded model as f16 (mmap zero-copy)\n")) << lines;
  const Value lazy = run("load_model_f32", {file});
  EXPECT_EQ(context().printed(),
            "Loaded model from: " + file + " (f32, lazy)\n  Weights available: 21\n");
  EXPECT_EQ(text(lazy), "<GGUFWeightCache<f32>: 0/200 cached>");
  context().verbose = false;
  run("load_model", {file});
  EXPECT_EQ(context().printed(), "");
  for (const char* name : {"load_model", "load_model_f16", "load_model_f32"}) {
    fails("File not found: none.gguf", name, {"none.gguf"});
  }
  const Folder folder;
  save(folder.file("a.bin"), "x");
  fails("models are .gguf and .safetensors files", "load_model", {folder.file("a.bin")});
  save(folder.file("a.gguf"), "no model");
  fails("a.gguf", "load_model", {folder.file("a.gguf")});
  save(folder.file("a.mlmodel"), "x");
  fails("CoreML", "load_model", {folder.file("a.mlmodel")});
}

TEST_P(Models, TensorsAreFoundByNameAndByTheWayThere) {
  const Value model = load("tiny-llama-q4_0.gguf");
  const Value query = run("get_tensor", {model, "blk.1.attn_q.weight"});
  ASSERT_EQ(query.kind(), Kind::QTensor);  // as the file has it
  EXPECT_EQ(query.qtensor().shape(), (Shape{256, 256}));
  const Value same = property(property(at(property(model, "blk"), 1), "attn_q"), "weight");
  EXPECT_TRUE(same.qtensor().shares_memory_with(query.qtensor()));
  EXPECT_EQ(property(property(model, "output_norm"), "weight").tensor().shape(), (Shape{256}));
  EXPECT_EQ(text(property(model, "blk")), "<ModelLayerCollectionF16>");
  EXPECT_EQ(text(at(property(model, "blk"), 0)), "<ModelLayerF16>");
  EXPECT_EQ(text(property(model, "output")), "<ModelFeatureF16>");
  EXPECT_EQ(shown("len", {property(model, "blk")}), "2");
  EXPECT_EQ(shown("len", {run("tensor_names", {model})}), "21");
  EXPECT_EQ(shown("get", {run("tensor_names", {model}), 0}), "\"blk.0.attn_k.weight\"");

  fails("Tensor 'blk.1.attn_q.weigth' not found in model; did you mean 'blk.1.attn_q.weight'?",
        "get_tensor", {model, "blk.1.attn_q.weigth"});
  fails("Model does not have property 'block'", [&] { property(model, "block"); });
  fails("Model does not have property 'outptu'; did you mean 'output'?",
        [&] { property(model, "outptu"); });
  fails("Layer 1 does not have feature 'attn_x'; did you mean 'attn_",
        [&] { property(at(property(model, "blk"), 1), "attn_x"); });
  fails("Feature 'attn_q' does not have property 'bias'",
        [&] { property(property(at(property(model, "blk"), 1), "attn_q"), "bias"); });
  fails("Layer index 7 not found in collection", [&] { at(property(model, "blk"), 7); });
  fails("cannot be indexed with String", [&] { at(property(model, "blk"), "x"); });
  fails("write blk[0].attn_q", [&] { property(property(model, "blk"), "attn_q"); });
  fails("get_tensor() expects a model", "get_tensor", {5, "x"});
  fails("tensor_names() expects a model", "tensor_names", {5});
}

TEST_P(Models, LazyOnesKeepAsManyTensorsAsTheyMay) {
  const Value cache = run("load_weight_cache_gguf_f16", {path("tiny-llama-q8_0.gguf"), 2});
  EXPECT_EQ(text(cache), "<GGUFWeightCache<f16>: 0/2 cached>");
  for (const char* name : {"output.weight", "token_embd.weight", "blk.0.attn_q.weight"}) {
    EXPECT_EQ(run("get_tensor", {cache, name}).kind(), Kind::QTensor);
  }
  EXPECT_EQ(text(cache), "<GGUFWeightCache<f16>: 2/2 cached>");
  const Value f32 = run("load_weight_cache_gguf_f32", {path("tiny-llama-q8_0.gguf"), 5});
  const Value layer = at(property(f32, "blk"), 1);
  EXPECT_EQ(text(layer), "<LazyModelLayerF32>");
  EXPECT_EQ(property(property(layer, "attn_norm"), "weight").tensor().count(), 256);
  fails("a number of tensors from 1", "load_weight_cache_gguf_f16", {path("x.gguf"), 0});
  fails("a .gguf file", "load_weight_cache_gguf_f32", {"x.safetensors", 3});

  const Folder folder;
  const std::string file = folder.file("m.safetensors");
  run("save_tensors", {map({{"layers.0.mlp.weight", tensor({1, 2}, {2})},
                            {"layers.1.mlp.weight", tensor({3, 4}, {2})},
                            {"bias", tensor({5}, {1})}}),
                       file});
  const Value plain = run("load_weight_cache_f32", {file, 10});
  EXPECT_EQ(text(plain), "<WeightCache<f32>: 0/10 cached>");
  EXPECT_EQ(floats(property(property(at(property(plain, "layers"), 1), "mlp"), "weight")),
            (std::vector<float>{3, 4}));
  EXPECT_EQ(floats(property(plain, "bias")), (std::vector<float>{5}));
  fails("is f32, not f16", "get_tensor", {run("load_weight_cache_f16", {file, 10}), "bias"});
  fails("a .safetensors file", "load_weight_cache_f16", {path("tiny-llama-q8_0.gguf"), 3});
  fails("File not found", "load_weight_cache_f32", {folder.file("none.safetensors"), 3});
  const Value whole = run("load_model", {file});
  EXPECT_EQ(floats(run("get_tensor", {whole, "bias"})), (std::vector<float>{5}));
  fails("is no GGUF file", "num_layers", {whole});
  fails("is no GGUF file", "tokenize", {whole, "x"});
}

TEST_P(Models, MetadataIsTheFiles) {
  const Value model = load("tiny-llama-f32.gguf");
  EXPECT_EQ(shown("model_info", {model, "general.name"}), "\"random-tiny-llama\"");
  EXPECT_EQ(shown("num_layers", {model}), "2");
  EXPECT_EQ(shown("num_heads", {model}), "8");
  EXPECT_EQ(shown("num_kv_heads", {model}), "2");
  EXPECT_EQ(shown("head_dim", {model}), "32");
  EXPECT_EQ(shown("hidden_size", {model}), "256");
  EXPECT_EQ(shown("vocab_size", {model}), "512");
  EXPECT_EQ(shown("context_length", {model}), "2048");
  EXPECT_EQ(text(run("rope_base", {model})), "10000");
  EXPECT_EQ(text(run("norm_eps", {model})), "0.00001");
  EXPECT_EQ(shown("bos_token", {model}), "1");
  EXPECT_EQ(shown("eos_token", {model}), "2");
  EXPECT_EQ(shown("len", {run("model_info", {model, "tokenizer.ggml.tokens"})}), "512");
  EXPECT_EQ(shown("contains", {run("metadata_keys", {model}), "llama.block_count"}), "true");
  EXPECT_EQ(shown("model_info", {model, "no.such.key", 7}), "7");
  fails("Model does not have metadata 'general.nam'; did you mean 'general.name'?", "model_info",
        {model, "general.nam"});
  for (const char* name : {"num_layers", "num_heads", "num_kv_heads", "head_dim", "hidden_size",
                           "context_length", "rope_base", "norm_eps", "metadata_keys"}) {
    fails("expects a model", name, {5});
  }
}

TEST_P(Models, TokensAreTheLibrarys) {
  const Value tokenizer = run("load_tokenizer", {path("tiny-llama-f32.gguf")});
  EXPECT_EQ(text(tokenizer), "<Tokenizer>");
  for (const Json& each : read_json(path("tokenize-tiny.json"))) {
    const std::string written = each["text"].get<std::string>();
    const Value ids = run("tokenize", {tokenizer, written, true});
    EXPECT_TRUE(equal(ids, tokens(each["ids_parse_special"].get<std::vector<std::int32_t>>())))
        << written;
    EXPECT_EQ(run("detokenize", {tokenizer, ids, false}).string(),
              run("detokenize_incremental", {tokenizer, ids}).string());
  }
  const Value ids = run("tokenize", {tokenizer, "hello world", false});
  EXPECT_EQ(run("detokenize", {tokenizer, ids}).string(), "hello world");
  EXPECT_EQ(shown("len", {ids}), "8");
  EXPECT_EQ(shown("detokenize_single", {tokenizer, 2, false}), "\"</s>\"");
  EXPECT_EQ(shown("detokenize_single", {tokenizer, 2}), "\"\"");

  const Value stream = run("text_stream", {tokenizer, true, true});
  std::string streamed;
  for (const std::int32_t id : ids.as<TokensObject>().ids) {
    streamed += method(stream, "push", {std::int64_t{id}}).string();
  }
  EXPECT_EQ(streamed + method(stream, "flush", {}).string(), "hello world");

  EXPECT_EQ(shown("vocab_size", {tokenizer}), "512");
  EXPECT_EQ(shown("token_id", {tokenizer, "</s>"}), "2");
  EXPECT_EQ(shown("token_id", {tokenizer, "no such token"}), "-1");
  EXPECT_EQ(shown("token_text", {tokenizer, 2}), "\"</s>\"");
  EXPECT_EQ(shown("is_end_token", {tokenizer, 2}), "true");
  EXPECT_EQ(shown("is_end_token", {tokenizer, 5}), "false");
  fails("there is no token 9999", "detokenize", {tokenizer, list({9999})});
  for (const char* name : {"detokenize", "detokenize_incremental"}) {
    fails("expects token ids", name, {tokenizer, "x"});
  }
  fails("expects a tokenizer", "tokenize", {5, "x"});
  fails("no such token", "pad_token", {tokenizer});
  fails("File not found", "load_tokenizer", {"none.json"});
  for (const char* name : {"vocab_size", "eos_token", "bos_token", "text_stream"}) {
    fails("expects a tokenizer", name, {5});
  }
  for (const char* name : {"token_text", "is_end_token", "detokenize_single"}) {
    fails("expects", name, {tokenizer, "x"});
  }
  fails("token_id() expects a String", "token_id", {tokenizer, 5});
  fails("int_to_tokenids() expects token ids", "int_to_tokenids", {"x"});
}

TEST_P(Models, ForwardGivesTheLogitsOfTheReference) {
  const Json reference = read_json(path("tiny-llama-f32.exact.json"));
  const Json& first = reference["runs"][0];
  const auto prompt = first["prompt"].get<std::vector<std::int32_t>>();
  const auto greedy = first["greedy"].get<std::vector<std::int32_t>>();
  const Value model = load("tiny-llama-f32.gguf");
  const Value cache = run("model_cache", {model, 64});
  EXPECT_EQ(text(cache), "<ModelCache: 0/64 positions>");
  std::vector<std::int32_t> written;
  Value logits = run("forward", {model, tokens(prompt), cache});
  EXPECT_EQ(logits.tensor().shape(), (Shape{1, 512}));
  for (std::size_t i = 0; i < 4; ++i) {
    const Value token = run("temperature_sample", {logits, 0.0});
    EXPECT_EQ(shown("sample_greedy", {logits}), quoted(token));
    written.push_back(static_cast<std::int32_t>(token.integer()));
    logits = run("forward", {model, token, cache});
  }
  EXPECT_EQ(written, std::vector<std::int32_t>(greedy.begin(), greedy.begin() + 4));
  EXPECT_EQ(method(cache, "length", {}).integer(), static_cast<std::int64_t>(prompt.size()) + 4);

  // Back to the prompt, and once more with the token on the device.
  const auto length = static_cast<std::int64_t>(prompt.size());
  const Value other = method(cache, "fork", {});
  method(other, "truncate", {length});
  const Value again =
      run("forward", {model,
                      tl::argmax(run("forward", {model, list({greedy[0], greedy[1]}), other, true})
                                     .tensor()
                                     .narrow(0, 1, 1),
                                 -1),
                      other});
  EXPECT_EQ(run("sample_greedy", {again}).integer(), greedy[3]);
  EXPECT_EQ(
      run("forward", {model, list({1, 2, 3}), run("model_cache", {model}), true}).tensor().shape(),
      (Shape{3, 512}));
  method(other, "clear", {});
  EXPECT_EQ(shown("len", {other}), "0");
  fails("at least one token id", "forward", {model, list({}), cache});
  fails("expects a model cache", "forward", {model, 1, 5});
  fails("from 1 to 2048 positions", "model_cache", {model, 1 << 20});
  fails("positions, not 99", [&] { method(cache, "truncate", {99}); });
  fails("no room", [&] {
    run("forward",
        {model, tokens(std::vector<std::int32_t>(65, 1)), run("model_cache", {model, 64})});
  });
}

TEST_P(Models, GenerateWritesWhatTheEngineWrites) {
  const Value model = load("tiny-llama-q8_0.gguf");
  const GgufFile file = GgufFile::open(path("tiny-llama-q8_0.gguf"));
  const Tokenizer tokenizer = Tokenizer::from_gguf(file);
  Engine engine(Decoder(file, ModelWeights::load(file, context().device)), tokenizer);
  GenerationRequest request;
  request.prompt = tokenizer.encode("hello");
  request.max_tokens = 12;
  request.sampling.temperature = 0;
  const std::string expected = engine.generate(std::move(request)).text;
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(run("generate", {model, "hello", 12, 0.0}).string(), expected);
  const Value own = run("load_tokenizer", {path("tiny-llama-q8_0.gguf")});
  EXPECT_EQ(run("generate", {model, own, "hello", 12, 0.0}).string(), expected);
  const Value none = Value::missing();  // named: max = 12, temp = 0.0
  EXPECT_EQ(run("generate", {model, "hello", none, 12, 0.0}).string(), expected);
  EXPECT_EQ(run("generate", {model, none, "hello", 12, 0.0}).string(), expected);
  const Value lazy = run("load_model_f32", {path("tiny-llama-q8_0.gguf")});
  EXPECT_EQ(run("generate", {lazy, "hello", 12, 0.0}).string(), expected);

  static std::string streamed;
  streamed.clear();
  const Value collect = function([](Context&, Args& args) -> Value {
    streamed += args.string(0);
    return {};
  });
  EXPECT_EQ(run("generate", {model, "hello", 12, 0.0, collect}).string(), expected);
  EXPECT_EQ(streamed, expected);
  EXPECT_EQ(run("generate", {model, own, "hello", 12, 0.0, collect}).string(), expected);
  const Value stop = function([](Context&, Args&) -> Value { return false; });
  EXPECT_LT(run("generate", {model, "hello", 12, 0.0, stop}).string().size(), expected.size());

  // The same seed writes the same, and the device's seed decides where none is given.
  const auto drawn = [&](const Value& seed) {
    return run("generate", {model, none, "hello", 12, 1.0, none, none, none, none, seed}).string();
  };
  EXPECT_EQ(drawn(7), drawn(7));
  context().device->set_seed(5);
  const std::string first = drawn(none), second = drawn(none);
  context().device->set_seed(5);
  EXPECT_EQ(drawn(none), first);
  EXPECT_NE(first, second);
  EXPECT_EQ(run("generate", {model, "hello", 0}).string(), "");

  const Value fail = function([](Context&, Args&) -> Value { throw RuntimeError("from within"); });
  fails("from within", "generate", {model, "hello", 12, 0.0, fail});
  fails("expects a function", "generate", {model, own, "hello", 12, 0.0, 5});
  fails("number of tokens from 0", "generate", {model, "hello", -1});
  fails("a temperature from 0", "generate", {model, "hello", 5, -1.0});
  fails("expects a model", "generate", {own, "hello"});
  fails("top_p", "generate", {model, none, "hello", 5, 1.0, none, none, 7.0});
  context().interrupted = true;
  fails("interrupted", "generate", {model, "hello", 12, 0.0});
  context().interrupted = false;
}

TEST_P(Models, EverythingIsGivenBack) {
  const std::uint64_t before = context().device->pool().live_bytes;
  {
    const Value model = load("tiny-llama-q4_k_m.gguf");
    const Value cache = run("model_cache", {model});
    run("forward", {model, list({1, 2, 3}), cache});
    run("generate", {model, "hello", 4, 0.0});
    const Value weight = property(property(at(property(model, "blk"), 0), "attn_q"), "weight");
  }
  context().device->synchronize();
  EXPECT_EQ(context().device->pool().live_bytes, before);
}

TEST_P(Models, ChatsFollowTheTemplate) {
  const Value model = load("tiny-llama-f32.gguf");
  const Value messages = list({map({{"role", "user"}, {"content", "Hi"}})});
  const Folder folder;
  save(folder.file("tokenizer.json"),
       R"({"model": {"type": "BPE", "byte_fallback": true, "merges": [],
                     "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3}}})");
  save(folder.file("tokenizer_config.json"),
       R"({"eos_token": "</s>", "chat_template":
           "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"})");
  context().verbose = true;
  const Value tokenizer = run("load_tokenizer", {folder.file("tokenizer.json")});
  EXPECT_EQ(context().printed(), "Loaded tokenizer from: " + folder.file("tokenizer.json") + "\n");
  EXPECT_EQ(shown("chat_template", {tokenizer, messages}), "\"<|user|>Hi</s><|assistant|>\"");
  EXPECT_EQ(shown("chat_template", {tokenizer, messages, false}), "\"<|user|>Hi</s>\"");
  fails("has no chat template", "chat_template",
        {run("load_tokenizer", {path("tiny-llama-f32.gguf")}), messages});
  fails("has no chat template", "chat_template", {model, messages});
  fails("\"content\" is missing", "chat_template", {model, list({map({{"role", "user"}})})});
  fails("a list of maps", "chat_template", {model, list({5})});
  fails("expects a tokenizer", "chat_template", {5, messages});
}

}  // namespace tl::lang::test
