// The files of a checkpoint: which are found, and what is refused of them.
#include "model/checkpoint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/saved_models.h"

namespace tl {
namespace {

using namespace test;

// A model whose weights are in two files with an index.
class Sharded : public testing::Test {
 protected:
  void SetUp() override {
    folder = model.write();
    fs::remove(model.file("model.safetensors"));
    for (const auto& [name, tensor] : model.tensors) {
      const bool first = parts[0].size() < 5;
      parts[first ? 0 : 1].emplace(name, tensor);
      index["weight_map"][name] = first ? kFirst : kSecond;
    }
    write();
  }
  void write() const {
    write_safetensors(model.file(kFirst), parts[0]);
    write_safetensors(model.file(kSecond), parts[1]);
    save(model.file("model.safetensors.index.json"), index.dump());
  }
  void refuse(ErrorKind kind, const std::string& text) const {
    write();
    expect_error(kind, text, [&] { convert_checkpoint({folder}, model.file("out.gguf")); });
  }

  const std::string kFirst = "model-00001-of-00002.safetensors",
                    kSecond = "model-00002-of-00002.safetensors";
  SavedModel model{"LlamaForCausalLM"};
  std::string folder;
  std::array<NamedTensors, 2> parts;
  Json index;
};

TEST_F(Sharded, AFolderItsIndexOrItsFilesAreTheSame) {
  const auto bytes = [&](const std::vector<std::string>& from) {
    convert_checkpoint(from, model.file("out.gguf"), {.name = "x"});
    return contents(model.file("out.gguf"));
  };
  const std::string whole = bytes({folder});
  EXPECT_EQ(bytes({model.file("model.safetensors.index.json")}), whole);
  EXPECT_EQ(bytes({model.file(kFirst), model.file(kSecond)}), whole);
  EXPECT_EQ(bytes({model.file(kSecond), model.file(kFirst), model.file("config.json")}), whole);
  fs::remove(model.file("model.safetensors.index.json"));
  EXPECT_EQ(bytes({folder + "/"}), whole);
}

TEST_F(Sharded, FilesMayBeNamedFromOtherFolders) {
  const Folder other;
  fs::rename(model.file("config.json"), other.file("config.json"));
  fs::rename(model.file("tokenizer.json"), other.file("tokenizer.json"));
  convert_checkpoint({model.file(kFirst), model.file(kSecond), other.file("config.json"),
                      other.file("tokenizer.json")},
                     other.path(), {.type = "F32", .name = "my model"});
  EXPECT_EQ(GgufFile::open(other.file("my-model-F32.gguf")).tensors().size(), 21u);
}

TEST_F(Sharded, AnIndexThatDoesNotFitIsRefused) {
  const std::string name = "model.norm.weight";
  const Json good = index;
  index["weight_map"]["model.extra.weight"] = kFirst;
  refuse(ErrorKind::BadFile, "tensor 'model.extra.weight' should be in " + kFirst + ", and is not");
  index = good;
  index["weight_map"][name] = kFirst;
  refuse(ErrorKind::BadFile, "tensor '" + name + "' should be in " + kFirst);
  index = good;
  index["weight_map"].erase(name);
  refuse(ErrorKind::BadFile, "does not name tensor '" + name + "'");
  index = good;
  index["weight_map"][name] = "model-00003-of-00003.safetensors";
  refuse(ErrorKind::BadFile, "names model-00003-of-00003.safetensors, which is not there");
  for (const Json& bad : {Json("../" + kFirst), Json(7), Json("weights.bin"), Json("")}) {
    index["weight_map"][name] = bad;
    refuse(ErrorKind::BadFile, "which is no name of a safetensors file");
  }
  index = {{"weight_map", Json::object()}};
  refuse(ErrorKind::BadFile, "weight_map: names no tensor");
  index = {{"metadata", 1}};
  refuse(ErrorKind::BadFile, "there is no key 'weight_map'");
  index = Json::array();
  refuse(ErrorKind::BadFile, "is an array of 0, not an object");
}

TEST_F(Sharded, ATensorInTwoFilesIsRefused) {
  parts[0].emplace("model.norm.weight", model.tensors.at("model.norm.weight"));
  refuse(ErrorKind::BadFile, "tensor 'model.norm.weight' is in ");
}

TEST(Checkpoint, WhatIsNoCheckpointIsRefused) {
  const Folder folder;
  const std::string out = folder.file("out.gguf");
  const auto refuse = [&](ErrorKind kind, const std::string& text,
                          const std::vector<std::string>& from) {
    expect_error(kind, text, [&] { convert_checkpoint(from, out); });
    EXPECT_FALSE(fs::exists(out));
  };
  refuse(ErrorKind::BadArgument, "no folder and no file is named", {});
  refuse(ErrorKind::BadFile, "there is no such file or folder", {folder.file("none")});
  refuse(ErrorKind::BadFile, "there is no model*.safetensors", {folder.path()});
  save(folder.file("pytorch_model.bin"), "x");
  refuse(ErrorKind::Unsupported, "pytorch_model*.bin, which can run code", {folder.path()});
  refuse(ErrorKind::BadArgument, "pytorch_model.bin is no file of a checkpoint",
         {folder.file("pytorch_model.bin")});
  write_safetensors(folder.file("model.safetensors"), {});
  refuse(ErrorKind::BadFile, "there is no config.json", {folder.path()});
  refuse(ErrorKind::BadArgument, "is a folder; name one folder, or files",
         {folder.path(), folder.file("model.safetensors")});
  save(folder.file("config.json"), "[1, 2");
  refuse(ErrorKind::BadFile, "config.json: is no JSON near byte ", {folder.path()});
  save(folder.file("config.json"), "");
  refuse(ErrorKind::BadFile, "config.json: is no JSON", {folder.path()});
  save(folder.file("config.json"), std::string(1 << 20, '['));
  refuse(ErrorKind::BadFile, "config.json: is no JSON", {folder.path()});
  save(folder.file("config.json"), std::string(1 << 20, '[') + std::string(1 << 20, ']'));
  refuse(ErrorKind::BadFile, "is an array of 1, not an object", {folder.path()});
}

TEST(Checkpoint, ItsOwnFilesAreNotWrittenOver) {
  const SavedModel model("LlamaForCausalLM");
  const std::string folder = model.write();
  for (const std::string name : {"model.safetensors", "config.json", "tokenizer.json"}) {
    const std::string before = contents(model.file(name));
    expect_error(ErrorKind::BadArgument, "is a file that is read",
                 [&] { convert_checkpoint({folder}, model.file(name)); });
    EXPECT_EQ(contents(model.file(name)), before);
  }
  expect_error(ErrorKind::BadArgument, "no file to write is named",
               [&] { convert_checkpoint({folder}, ""); });
  expect_error(ErrorKind::BadFile, "cannot be created",
               [&] { convert_checkpoint({folder}, model.file("no/such/out.gguf")); });
}

}  // namespace
}  // namespace tl
