// Texts as training reads them: documents, tokens, rows and their order.
#include "model/train_data.h"

#include <algorithm>

#include "model/training_files.h"

namespace tl {
namespace {

using namespace test;
using training_data::pack_rows;
using training_data::RowOrder;
using training_data::Rows;
using training_data::split_documents;
using training_data::tokenise;

using Views = std::vector<std::string_view>;

TEST(TrainData, DocumentsStandBetweenLinesThatAreExactlyTheMark) {
  EXPECT_EQ(split_documents("one\n<|end|>\ntwo\nlines\n<|end|>\n"), (Views{"one", "two\nlines"}));
  EXPECT_EQ(split_documents("a <|end|> b\n<|end|> \nc"), (Views{"a <|end|> b\n<|end|> \nc"}));
  EXPECT_EQ(split_documents("one\r\n<|end|>\r\ntwo"), (Views{"one", "two"}));
  EXPECT_EQ(split_documents("<|end|>\n \n\t\n<|end|>\n<|end|>"), Views{});
  EXPECT_EQ(split_documents(""), Views{});
  EXPECT_EQ(split_documents("\n  x\n\n"), (Views{"\n  x\n"}));  // only one line end is not text
}

TEST(TrainData, DocumentsBeginAndEndWithTheirTokens) {
  const Folder folder;
  const TrainConfig config = tiny_config(folder);
  save(config.train[0], "a\n<|end|>\n<|user|>b<|eot|>\n");
  const Tokenizer tokenizer = chat_vocabulary().tokenizer();
  const auto stream = tokenise(config.train, tokenizer, "v", folder.file("cache"));
  const auto byte = [](char c) {
    return static_cast<std::uint32_t>(byte_id(static_cast<unsigned char>(c)));
  };
  EXPECT_EQ(stream.ids,
            (std::vector<std::uint32_t>{1, byte('a'), 2, 1, kUserMark, byte('b'), kTurnEnd, 2}));
  EXPECT_EQ(stream.starts, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(stream.text.bytes, 17u);
  EXPECT_FALSE(stream.text.from_cache);
}

TEST(TrainData, OneTokenForBothStandsOnceBetweenDocuments) {
  const Folder folder;
  const TrainConfig config = tiny_config(folder);
  save(config.train[0], "a\n<|end|>\nb\n");
  VocabularyFile vocabulary("llama");
  vocabulary.tokens(with_bytes({}));
  vocabulary.add("bos_token_id", std::uint32_t{2}).add("eos_token_id", std::uint32_t{2});
  vocabulary.add("add_space_prefix", false);
  const auto stream = tokenise(config.train, vocabulary.tokenizer(), "v", folder.file("cache"));
  EXPECT_EQ(stream.ids, (std::vector<std::uint32_t>{2, 3 + 'a', 2, 3 + 'b', 2}));
  EXPECT_EQ(stream.starts, (std::vector<std::int64_t>{0, 3}));
}

TEST(TrainData, TokensAreKeptAsLongAsTextAndVocabularyStay) {
  const Folder folder;
  const TrainConfig config = tiny_config(folder);
  const Tokenizer tokenizer = chat_vocabulary().tokenizer();
  const std::string cache = folder.file("cache");
  const auto read = [&](const std::string& vocabulary) {
    return tokenise(config.train, tokenizer, vocabulary, cache);
  };
  const auto first = read("v");
  const auto again = read("v");
  EXPECT_TRUE(again.text.from_cache);
  EXPECT_EQ(again.ids, first.ids);
  EXPECT_EQ(again.starts, first.starts);
  EXPECT_FALSE(read("w").text.from_cache);
  EXPECT_TRUE(read("w").text.from_cache);
  save(config.train[0], "another text");
  EXPECT_FALSE(read("w").text.from_cache);
  save(cache, "damaged");
  EXPECT_FALSE(read("w").text.from_cache);
  EXPECT_TRUE(read("w").text.from_cache);
}

TEST(TrainData, FilesThatCannotBeUsedAreNamed) {
  const Folder folder;
  TrainConfig config = tiny_config(folder);
  const Tokenizer tokenizer = chat_vocabulary().tokenizer();
  const auto fails = [&](const std::string& text, const std::string& message) {
    save(config.train[0], text);
    expect_error(ErrorKind::BadFile, config.train[0] + ": " + message,
                 [&] { tokenise(config.train, tokenizer, "v", folder.file("cache")); });
  };
  fails("", "is empty");
  fails("\n<|end|>\n \n", "has no document");
  fails("ok \xff", "is not UTF-8 at byte 3");
}

TEST(TrainData, RowsHaveEveryTokenAsATargetOnce) {
  const Folder folder;
  TrainConfig config = tiny_config(folder);
  config.sizes.context = 4;
  save(config.train[0], "abcdefg");  // nine tokens
  const Tokenizer tokenizer = chat_vocabulary().tokenizer();
  const auto stream = tokenise(config.train, tokenizer, "v", folder.file("cache"));
  const Rows rows = pack_rows(stream, tokenizer, config, Device::cpu());
  EXPECT_EQ(rows.ids.shape(), (Shape{2, 4}));
  const auto ids = rows.ids.to_vector<std::uint32_t>(),
             targets = rows.targets.to_vector<std::uint32_t>();
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), stream.ids.begin()));
  EXPECT_TRUE(std::equal(targets.begin(), targets.end(), stream.ids.begin() + 1));
  EXPECT_EQ(rows.counted, 8u);
  EXPECT_EQ(rows.bytes, 7u);

  config.sizes.context = 5;  // the last row is not full
  const Rows more = pack_rows(stream, tokenizer, config, Device::cpu());
  EXPECT_EQ(more.ids.shape(), (Shape{2, 5}));
  EXPECT_EQ(more.targets.to_vector<std::uint32_t>()[7], 2u);
  EXPECT_EQ(more.targets.to_vector<std::uint32_t>()[8], Rows::kNone);
  EXPECT_EQ(more.counted, 8u);
}

TEST(TrainData, TheLossMayBeOfTheAssistantAlone) {
  const Folder folder;
  TrainConfig config = tiny_config(folder);
  config.loss_on = LossOn::Assistant;
  save(
      config.train[0],
      "<|user|>a<|eot|><|assistant|>bc<|eot|><|user|>d<|eot|><|assistant|>e<|eot|>\n<|end|>\nxy\n");
  const Tokenizer tokenizer = chat_vocabulary().tokenizer();
  const auto stream = tokenise(config.train, tokenizer, "v", folder.file("cache"));
  const Rows rows = pack_rows(stream, tokenizer, config, Device::cpu());
  std::string counted;
  int ends = 0;
  for (const std::uint32_t id : rows.targets.to_vector<std::uint32_t>()) {
    if (id == Rows::kNone) continue;
    if (id == kTurnEnd) ++ends;
    if (!tokenizer.is_special(static_cast<TokenId>(id)))
      counted += tokenizer.piece(static_cast<TokenId>(id));
  }
  EXPECT_EQ(counted, "bcexy");  // and the document without turns
  EXPECT_EQ(ends, 2);
  config.assistant_mark = "<|bot|>";
  expect_error(ErrorKind::BadArgument, "key 'assistant_mark' is '<|bot|>', which is no token",
               [&] { pack_rows(stream, tokenizer, config, Device::cpu()); });
}

TEST(TrainData, EveryEpochHasEachRowOnceInAnotherOrder) {
  RowOrder order(7, 50), same(7, 50), other(8, 50);
  std::vector<std::vector<std::int64_t>> epochs(3);
  bool differs = false;
  for (std::int64_t i = 0; i < 150; ++i) {
    epochs[static_cast<std::size_t>(i / 50)].push_back(order.at(i));
    differs = differs || order.at(i) != other.at(i);
  }
  EXPECT_TRUE(differs);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_EQ(same.at(120), epochs[2][20]);  // from anywhere
  for (std::vector<std::int64_t>& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    for (std::int64_t i = 0; i < 50; ++i) EXPECT_EQ(epoch[static_cast<std::size_t>(i)], i);
  }
}

}  // namespace
}  // namespace tl
