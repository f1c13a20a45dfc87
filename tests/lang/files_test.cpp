#include "library_context.h"
#include "tl/model/gguf_writer.h"
#include "tl/ops/copy.h"
#include "tl/tensor/npy.h"
#include "tl/tensor/safetensors.h"

namespace tl::lang::test {

namespace {

Value six() { return tensor({1, 2, 3, 4, 5, 6}, {2, 3}); }

}  // namespace

TEST(TensorFiles, KeepEveryDtypeInTheLanguagesOwnFormat) {
  const Folder folder;
  const std::string path = folder.file("t.bin");
  for (const DType dtype : kDTypes) {
    const Value saved = to_dtype(six().tensor(), dtype);
    run("save", {saved, path});
    EXPECT_EQ(context().printed(), "Saved tensor to: " + path + "\n");
    const Value loaded = run("load", {path});
    EXPECT_EQ(context().printed(), "Loaded tensor from: " + path + " (shape: [2, 3])\n");
    EXPECT_EQ(loaded.tensor().dtype(), dtype);
    EXPECT_TRUE(equal(loaded, saved)) << name(dtype);
  }
  // Rank, sizes, bytes of an element, data.
  run("save", {tensor({1}, {1}), path});
  EXPECT_EQ(contents(path), std::string("\1\0\0\0\1\0\0\0\4\0\0\0\0\0\x80\x3f", 16));
  EXPECT_EQ(run("load_f16", {path}).tensor().dtype(), DType::F16);
  run("save", {run("load_f16", {path}), path});
  EXPECT_EQ(contents(path).size(), 14U);
  EXPECT_EQ(run("load_f32", {path}).tensor().dtype(), DType::F32);
  context().printed();
}

TEST(TensorFiles, DamageIsFound) {
  const Folder folder;
  const std::string path = folder.file("t.bin");
  save(path, "");
  fails("ends at byte 0, in its rank", "load", {path});
  save(path, std::string("\1\0\0\0\1\0", 6));
  fails("in its sizes", "load", {path});
  save(path, std::string("\xff\0\0\0", 4));
  fails("its rank would be 255", "load", {path});
  save(path, std::string("\1\0\0\0\2\0\0\0\4\0\0\0\0\0\x80\x3f", 16));
  fails("has 8 bytes, and there are 4", "load", {path});
  save(path, std::string("\1\0\0\0\1\0\0\0\3\0\0\0abc", 15));
  fails("an element of 3 bytes", "load", {path});
  save(path, std::string("\2\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\4\0\0\0", 16));
  fails("t.bin", "load", {path});
  fails("File not found: " + folder.file("none"), "load", {folder.file("none")});
  fails("File not found", "load_f16", {folder.file("none")});
  fails("File not found", "load_f32", {folder.file("none")});
  fails("none", "save", {six(), folder.file("none/t.bin")});
  fails("save()", "save", {"text", path});
}

TEST(TensorFiles, OthersByTheirExtension) {
  const Folder folder;
  run("save", {six(), folder.file("t.npy")});
  EXPECT_EQ(read_npy(folder.file("t.npy")).shape(), (Shape{2, 3}));
  EXPECT_TRUE(equal(run("load", {folder.file("t.npy")}), six()));
  run("save", {six(), folder.file("t.safetensors"), "w"});
  EXPECT_TRUE(Safetensors(folder.file("t.safetensors")).has("w"));
  EXPECT_TRUE(equal(run("load", {folder.file("t.safetensors")}), six()));
  EXPECT_TRUE(equal(run("load", {folder.file("t.safetensors"), "w"}), six()));
  fails("Tensor 'v' not found", "load", {folder.file("t.safetensors"), "v"});
  save(folder.file("bad.npy"), "no array");
  fails("bad.npy", "load", {folder.file("bad.npy")});

  const Value both = map({{"a", six()}, {"b", list({1.0, 2.0})}});
  for (const char* file : {"m.safetensors", "m.npz"}) {
    run("save_tensors", {both, folder.file(file)});
    const Value loaded = run("load_tensors", {folder.file(file)});
    EXPECT_EQ(shown("keys", {loaded}), "[\"a\", \"b\"]");
    EXPECT_TRUE(equal(run("get", {loaded, "a"}), six()));
    EXPECT_EQ(floats(run("get", {loaded, "b"})), (std::vector<float>{1, 2}));
  }
  fails("has 2 tensors; give the name of one", "load", {folder.file("m.safetensors")});
  fails("a map of tensors", "save_tensors", {six(), folder.file("x.safetensors")});
  fails("File not found", "load_tensors", {folder.file("x.safetensors")});
  context().printed();
}

TEST(TextFiles, AreReadAndWritten) {
  const Folder folder;
  const std::string path = folder.file("a.txt");
  EXPECT_EQ(shown("file_exists", {path}), "false");
  run("write_text", {path, "one\n"});
  run("append_text", {path, "two\n"});
  EXPECT_EQ(shown("read_text", {path}), "\"one\\ntwo\\n\"");
  EXPECT_EQ(shown("read_lines", {path}), "[\"one\", \"two\"]");
  EXPECT_EQ(shown("file_exists", {path}), "true");
  run("write_text", {folder.file("b"), 5});
  EXPECT_EQ(shown("list_dir", {folder.path()}), "[\"a.txt\", \"b\"]");
  fails("File not found: " + folder.file("c"), "read_text", {folder.file("c")});
  fails("File not found", "read_lines", {folder.file("c")});
  fails("is a folder", "read_text", {folder.path()});
  fails("IO error: ", "write_text", {folder.file("none/c"), "x"});
  fails("IO error: ", "append_text", {folder.file("none/c"), "x"});
  fails("File not found", "list_dir", {folder.file("c")});
  fails("IO error: ", "list_dir", {path});
  fails("file_exists() expects a String", "file_exists", {5});
}

TEST(TextFiles, FoldersAreMadeAndFilesRemoved) {
  const Folder folder;
  const std::string inner = folder.file("a/b");
  run("make_dir", {inner});
  run("make_dir", {inner});
  run("write_text", {inner + "/x", "1"});
  fails("IO error: " + inner + " cannot be removed", "remove_file", {inner});
  fails("IO error: " + inner + "/x cannot be made", "make_dir", {inner + "/x"});
  run("remove_file", {inner + "/x"});
  fails("File not found: " + inner + "/x", "remove_file", {inner + "/x"});
  run("remove_file", {inner});
  EXPECT_EQ(shown("list_dir", {folder.file("a")}), "[]");
}

TEST(TextFiles, TablesOfNumbersAreTensors) {
  const Folder folder;
  const std::string path = folder.file("t.csv");
  save(path, "1,2.5\r\n-3, 4e1\n\n");
  const Value table = run("read_csv", {path});
  EXPECT_EQ(table.tensor().shape(), (Shape{2, 2}));
  EXPECT_EQ(floats(table), (std::vector<float>{1, 2.5, -3, 40}));
  save(path, "x;y\n1;2\n");
  EXPECT_EQ(run("read_csv", {path, ";", true}).tensor().shape(), (Shape{1, 2}));
  save(path, "name,\"a, \"\"b\"\"\nc\"\n1,\n");
  const Value mixed = run("read_csv", {path});
  EXPECT_EQ(shown("get", {run("get", {mixed, 0}), 1}), "\"a, \\\"b\\\"\\nc\"");
  EXPECT_EQ(shown("len", {run("get", {mixed, 1})}), "2");
  EXPECT_EQ(text(run("get", {run("get", {mixed, 1}), 0})), "1");
  save(path, "1,2\n3\n");
  EXPECT_TRUE(run("read_csv", {path}).is(Kind::List));  // rows of different lengths
  save(path, "");
  EXPECT_EQ(run("read_csv", {path}).tensor().shape(), (Shape{0, 0}));
  save(path, "\"a");
  fails("Parse error: " + path + ": a quote has no end", "read_csv", {path});
  fails("one character that separates", "read_csv", {path, ",,"});
  fails("File not found", "read_csv", {folder.file("none.csv")});
}

TEST(Json, GoesBothWays) {
  const std::string text = R"({"a":[1,2.5,true,null,"x\n"],"b":{"c":-7}})";
  const Value parsed = run("parse_json", {text});
  EXPECT_EQ(shown("keys", {parsed}), "[\"a\", \"b\"]");
  EXPECT_EQ(run("to_json", {parsed}).string(), text);
  EXPECT_TRUE(run("get", {run("get", {parsed, "a"}), 3}).is(Kind::Void));
  EXPECT_EQ(run("to_json", {tensor({1, 2, 3, 4}, {2, 2})}).string(), "[[1.0,2.0],[3.0,4.0]]");
  EXPECT_EQ(run("to_json", {run("range", {3})}).string(), "[0,1,2]");
  EXPECT_EQ(run("to_json", {list({1}), 2}).string(), "[\n  1\n]");
  EXPECT_EQ(shown("parse_json", {"18446744073709551615"}), "1.8446744073709552e19");
  fails("parse_json(): the JSON ends early at line 1, column 6", "parse_json", {"{\"a\":"});
  fails("parse_json(): this is no JSON at line 2, column 2", "parse_json", {"[1,\n x]"});
  fails("deeper than 256", "parse_json", {std::string(100000, '[')});
  fails("cannot write KVCache", "to_json", {run("KVCache::new", {1})});
  fails("at most 64", "to_json", {1, 1000});
  Value deep = list({});
  for (int i = 0; i < 1000; ++i) deep = list({deep});
  fails("deeper than 256", "to_json", {deep});
}

TEST(CandleNames, MeanTheLanguagesOwnFunctions) {
  const Value x = tensor({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(floats(run("cndl_matmul", {x, x})), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(run("cndl_transpose", {six(), 0, 1}).tensor().shape(), (Shape{3, 2}));
  EXPECT_EQ(run("cndl_reshape", {six(), list({3, 2})}).tensor().shape(), (Shape{3, 2}));
  for (const char* name : {"softmax", "log_softmax"}) {
    EXPECT_TRUE(equal(run(std::string("cndl_") + name, {x, 0}), run(name, {x, 0}))) << name;
  }
  for (const char* name : {"gelu", "silu", "relu", "tanh"}) {
    EXPECT_TRUE(equal(run(std::string("cndl_") + name, {x}), run(name, {x}))) << name;
  }
  const Value ones = tensor({2, 2}, {2});
  EXPECT_NEAR(floats(run("cndl_layer_norm", {x, 2}))[1], 1, 1e-4);
  EXPECT_NEAR(floats(run("cndl_layer_norm", {x, 2, ones, ones}))[1], 4, 1e-4);
  EXPECT_NEAR(floats(run("cndl_rms_norm", {x, ones}))[0], 2 / std::sqrt(2.5), 1e-4);
  EXPECT_EQ(floats(run("cndl_embedding", {list({1, 0}), x})), (std::vector<float>{3, 4, 1, 2}));
  for (const char* name : {"softmax", "log_softmax", "gelu", "silu", "relu", "tanh"}) {
    fails(name, std::string("cndl_") + name, {"text"});
  }
  fails("the size of the last dimension", "cndl_layer_norm", {x, 3});
  fails("cndl_transpose", "cndl_transpose", {"x", 0, 1});
  fails("matmul", "cndl_matmul", {x, six().tensor().t()});
  fails("", "cndl_reshape", {x, list({3})});
  fails("rms_norm", "cndl_rms_norm", {x, tensor({1, 2, 3}, {3})});
  fails("Index 9 out of bounds for length 2", "cndl_embedding", {list({9}), x});
}

TEST(CandleNames, RopeTurnsHalves) {
  // One head of four: (x0, x2) and (x1, x3) turn by the position and a hundredth of it.
  const Value x = tensor({1, 0, 0, 1}, {1, 1, 4});
  const std::vector<float> turned = floats(run("cndl_rope", {x, 2}));
  EXPECT_NEAR(turned[0], std::cos(2.0), 1e-6);
  EXPECT_NEAR(turned[2], std::sin(2.0), 1e-6);
  EXPECT_NEAR(turned[1], -std::sin(0.02), 1e-6);
  EXPECT_NEAR(turned[3], std::cos(0.02), 1e-6);
  EXPECT_EQ(floats(run("cndl_rope", {x, 0})), (std::vector<float>{1, 0, 0, 1}));
  fails("an even size", "cndl_rope", {tensor({1, 2, 3}, {1, 1, 3}), 0});
  fails("a base above 0", "cndl_rope", {x, 0, 0.0});
}

TEST(CandleNames, FilesPrintWhatTheyDid) {
  const Folder folder;
  const std::string path = folder.file("t.safetensors");
  run("cndl_save_safetensor", {six(), path, "w"});
  EXPECT_EQ(context().printed(), "Saved tensor 'w' to " + path + "\n");
  EXPECT_TRUE(equal(run("cndl_load_safetensor", {path, "w"}), six()));
  EXPECT_EQ(context().printed(), "Loaded tensor 'w' from " + path + " (f32, shape: [2, 3])\n");
  run("cndl_list_safetensors", {path});
  EXPECT_EQ(context().printed(),
            "Tensors in " + path + ":\n  Total: 1 tensors\n\n  - w : F32 [2, 3]\n");
  fails("Tensor 'v' not found", "cndl_load_safetensor", {path, "v"});
  fails("File not found", "cndl_list_safetensors", {folder.file("none")});
  fails("cndl_save_safetensor()", "cndl_save_safetensor", {"x", path, "w"});

  const Value model = run("cndl_load_model_safetensor", {path});
  EXPECT_EQ(context().printed(), "✓ Loaded model (f32, 1 tensors)\n");
  EXPECT_EQ(text(model), "<ModelF32>");
  run("cndl_save_model_safetensor", {model, folder.file("u.safetensors")});
  EXPECT_EQ(context().printed(),
            "✓ Saved model to " + folder.file("u.safetensors") + " (1 tensors)\n");
  EXPECT_TRUE(equal(run("load", {folder.file("u.safetensors"), "w"}), six()));
  context().printed();
  fails("File not found", "cndl_load_model_safetensor", {folder.file("none")});
  fails("expects a model", "cndl_save_model_safetensor", {5, path});

  GgufWriter writer;
  writer.add("general.architecture", "llama");
  const std::vector<float> numbers{1, 2};
  writer.add_tensor("w", {2}, QType::F32, std::as_bytes(std::span(numbers)));
  const std::string gguf = folder.file("m.gguf");
  writer.write(gguf);
  EXPECT_EQ(floats(run("cndl_load_gguf_tensor", {gguf, "w"})), numbers);
  context().printed();
  run("cndl_list_gguf_tensors", {gguf});
  EXPECT_EQ(context().printed(), "Tensors in " + gguf +
                                     ":\n  GGUF version: 3\n  Total: 1 tensors\n\n"
                                     "  - w : F32 [2]\n");
  fails("Tensor 'x' not found", "cndl_load_gguf_tensor", {gguf, "x"});
  fails("File not found", "cndl_list_gguf_tensors", {folder.file("none")});
}

}  // namespace tl::lang::test
