// Tokens with a role: which they are, and whether a reader adds them to texts. Several files say
// so, and not always the same; the first that knows counts:
//
//   an id      tokenizer_config.json names the token's text, tokenizer.json its id; config.json;
//              the post_processor of tokenizer.json; special_tokens_map.json; tokenizer.model
//   adding it  tokenizer_config.json; the post_processor of tokenizer.json
#include <algorithm>
#include <array>
#include <map>

#include "model/convert_vocab.h"
#include "tl/base/error.h"
#include "tl/base/mapped_file.h"
#include "tl/base/text.h"

namespace tl::saved {

namespace {

struct Role {
  std::string_view name;  // in the checkpoint: "bos_token", "bos_token_id", "add_bos_token"
  std::string_view id_key;
  std::string_view add_key;  // empty: no reader is told
};

constexpr std::array<Role, 7> kRoles = {{
    {"bos", "tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token"},
    {"eos", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.add_eos_token"},
    {"eot", "tokenizer.ggml.eot_token_id", ""},
    {"unk", "tokenizer.ggml.unknown_token_id", ""},
    {"sep", "tokenizer.ggml.seperator_token_id",
     "tokenizer.ggml.add_sep_token"},  // as it is spelled
    {"pad", "tokenizer.ggml.padding_token_id", ""},
    {"mask", "tokenizer.ggml.mask_token_id", ""},
}};

using Texts = std::map<std::string, std::string, std::less<>>;  // by role

// A token's text: itself, or the content of an object.
std::optional<std::string> token_text(const Fields& file, std::string_view key) {
  const Json* value = file.find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return Fields(join(file.where(), ": ", key), *value).text_if("content");
  return file.text_if(key);
}

Texts read_texts(const std::optional<TokenizerFiles::File>& file) {
  Texts texts;
  if (!file) return texts;
  const Fields fields = file->fields();
  for (const std::string_view role : {"bos", "eos", "unk", "sep", "pad", "mask", "cls"}) {
    if (auto text = token_text(fields, join(role, "_token"))) texts.emplace(role, std::move(*text));
  }
  return texts;
}

class Roles {
 public:
  explicit Roles(const TokenizerFiles& files) : files_(files), texts_(read_texts(files.config)) {
    if (files.tokenizer) read_processors();
    if (!files.config) return;
    const Fields config = files.config->fields();
    for (const Role& role : kRoles) {
      const Json* add = config.find(join("add_", role.name, "_token"));
      if (add != nullptr && add->is_boolean())
        adds_.insert_or_assign(std::string(role.name), add->get<bool>());
    }
  }

  const Texts& texts() const noexcept { return texts_; }
  const std::map<std::string, bool, std::less<>>& adds() const noexcept { return adds_; }

 private:
  std::string text(std::string_view role) const {
    const auto found = texts_.find(role);
    return found == texts_.end() ? "" : found->second;
  }
  void set_if_none(std::string_view role, const std::string& text) {
    if (!text.empty()) texts_.emplace(role, text);
  }

  void read_processors() {
    set_if_none("bos", text("cls"));
    set_if_none("eos", text("sep"));
    const auto first = files_.tokenizer->fields().object("post_processor");
    if (!first) return;
    const Json* list = first->find("processors");
    if (list == nullptr) {
      read_processor(*first);
      return;
    }
    if (!list->is_array()) first->fail("key 'processors' is ", shown(*list), ", not a list");
    for (const Json& item : *list) read_processor(Fields(first->where(), item));
  }

  void read_processor(const Fields& processor) {
    const std::string type = processor.text_if("type").value_or("");
    if (type == "RobertaProcessing") {
      for (const std::string_view role : {"bos", "eos", "sep"})
        adds_.insert_or_assign(std::string(role), true);
    } else if (type == "TemplateProcessing") {
      read_template(processor);
    }
  }

  // One part of a template: {"SpecialToken": {"id": "<s>"}} or {"Sequence": {"id": "A"}}.
  static std::string part(const Json& item, std::string_view kind) {
    const auto found = item.is_object() ? item.find(kind) : item.end();
    if (!item.is_object() || found == item.end() || !found->is_object()) return "";
    const auto id = found->find("id");
    return id != found->end() && id->is_string() ? id->get<std::string>() : "";
  }
  static std::vector<Json> parts(const Fields& processor, std::string_view key) {
    const Json* list = processor.find(key);
    if (list == nullptr || !list->is_array()) return {};
    return {list->begin(), list->end()};
  }

  void read_template(const Fields& processor) {
    const std::vector<Json> single = parts(processor, "single");
    std::string first, last;
    if (single.size() > 1) {
      first = part(single.front(), "SpecialToken");
      last = part(single.back(), "SpecialToken");
    }
    if (!first.empty()) {
      if (first != text("bos") && first != text("cls")) {
        set_if_none("bos", first);
        set_if_none("cls", first);
      }
      adds_.insert_or_assign("bos", first == text("bos") || first == text("cls"));
    }
    if (!last.empty()) {
      // What ends a text is the end; the other one then ends a turn.
      if (last != text("eos")) {
        if (files_.config) set_if_none("eot", text("eos"));
        texts_.insert_or_assign("eos", last);
      }
      adds_.insert_or_assign("eos", true);
    }
    read_pair(parts(processor, "pair"), first, last);
  }

  // What stands between two texts.
  void read_pair(std::vector<Json> pair, const std::string& first, const std::string& last) {
    if (!first.empty() && !pair.empty() && part(pair.front(), "SpecialToken") == first) {
      pair.erase(pair.begin());
    }
    if (!last.empty() && !pair.empty() && part(pair.back(), "SpecialToken") == last)
      pair.pop_back();
    if (pair.size() < 3 || part(pair.front(), "Sequence") != "A" ||
        part(pair.back(), "Sequence") != "B") {
      return;
    }
    const auto separates = [&](const Json& item) {
      const std::string token = part(item, "SpecialToken");
      return !token.empty() && (token == text("sep") || token == text("eos"));
    };
    const bool adds =
        (separates(pair[1]) && last.empty()) || (pair.size() == 4 && separates(pair[2]));
    adds_.insert_or_assign("sep", adds);
    if (adds) set_if_none("sep", text("eos"));
  }

  const TokenizerFiles& files_;
  Texts texts_;
  std::map<std::string, bool, std::less<>> adds_;
};

class Ids {
 public:
  Ids(const Vocabulary& vocabulary, std::vector<std::string>& notes)
      : vocabulary_(vocabulary), notes_(notes) {}

  void set(std::string_view role, std::int64_t id, const std::string& where) {
    if (ids_.contains(role)) return;
    const auto count = static_cast<std::int64_t>(vocabulary_.tokens.size());
    if (id >= 0 && id < count) {
      ids_.emplace(role, static_cast<std::uint32_t>(id));
    } else {
      notes_.push_back(join(where, ": ", role, "_token_id is ", id, ", and there are ", count,
                            " tokens; it is left out"));
    }
  }
  void set_by_text(const Texts& texts, const std::vector<AddedToken>& tokens,
                   const std::string& where) {
    for (const auto& [role, text] : texts) {
      for (const AddedToken& token : tokens) {
        if (token.text != text) continue;
        set(role, token.id, where);
        break;
      }
    }
  }
  void set_from_vocabulary(const Texts& texts, const std::string& where) {
    for (const auto& [role, text] : texts) {
      const auto& tokens = vocabulary_.tokens;
      const auto token = std::find(tokens.begin(), tokens.end(), text);
      if (token != tokens.end()) set(role, token - tokens.begin(), where);
    }
  }
  const std::uint32_t* find(std::string_view role) const {
    const auto found = ids_.find(role);
    return found == ids_.end() ? nullptr : &found->second;
  }

 private:
  const Vocabulary& vocabulary_;
  std::vector<std::string>& notes_;
  std::map<std::string, std::uint32_t, std::less<>> ids_;
};

void set_from_config(const ModelConfig& config, Ids& ids) {
  for (const Role& role : kRoles) {
    const auto found = config.json.find(join(role.name, "_token_id"));
    // A list is what may end a text; tokenizer_config.json has the one that does.
    if (found == config.json.end() || !found->is_number_integer()) continue;
    ids.set(role.name, found->get<std::int64_t>(), config.file);
  }
}

// ---- chat templates

using Metadata = std::vector<std::pair<std::string, GgufValue>>;

std::optional<Json> read_chat_template(const TokenizerFiles& files) {
  if (files.config) {
    if (const Json* found = files.config->fields().find("chat_template")) return *found;
  }
  if (const auto& path = files.template_path) {
    const MappedFile file(*path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.size());
    if (const std::size_t bad = first_invalid_utf8(text); bad != text.size()) {
      throw Error(ErrorKind::BadFile, *path, "is not UTF-8 at byte ", bad);
    }
    return Json(text);
  }
  if (const auto& path = files.json_template_path) {
    const Json json = read_json(*path);
    if (const Json* found = Fields(*path, json).find("chat_template")) return *found;
  }
  return std::nullopt;
}

// A text, or a list of texts with names.
void add_chat_templates(const Json& found, std::vector<std::string>& notes, Metadata& out) {
  if (found.is_string()) {
    out.emplace_back("tokenizer.chat_template", GgufValue(found.get_ref<const std::string&>()));
    return;
  }
  std::map<std::string, std::string> named;
  for (const Json& item : found.is_array() ? found : Json::array()) {
    if (!item.is_object() || !item.contains("name") || !item["name"].is_string() ||
        !item.contains("template") || !item["template"].is_string()) {
      named.clear();
      break;
    }
    std::string name = item["name"].get<std::string>();
    for (char& c : name) {
      const bool is_plain =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (!is_plain) c = '_';
    }
    if (!name.empty()) named.emplace(name, item["template"].get<std::string>());
  }
  if (named.empty()) {
    notes.push_back(join("the chat template is ", shown(found),
                         ", not a text or a list of named "
                         "texts; it is left out"));
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, text] : named) {
    if (name == "default") {
      out.emplace_back("tokenizer.chat_template", GgufValue(text));
    } else {
      out.emplace_back("tokenizer.chat_template." + name, GgufValue(text));
      names.push_back(name);
    }
  }
  if (!names.empty()) {
    out.emplace_back("tokenizer.chat_templates",
                     GgufValue::array(std::span<const std::string>(names)));
  }
}

}  // namespace

std::vector<std::pair<std::string, GgufValue>> special_token_metadata(
    const TokenizerFiles& files, const ModelConfig& config, const Vocabulary& vocabulary,
    std::vector<std::string>& notes) {
  const bool is_llama = config.architecture.family == Family::Llama;
  const Roles roles(files);
  Ids ids(vocabulary, notes);
  if (files.tokenizer && files.config) {
    ids.set_by_text(roles.texts(), files.added_in_tokenizer(), files.tokenizer->path);
  }
  set_from_config(config, ids);
  ids.set_from_vocabulary(roles.texts(), config.file);
  ids.set_from_vocabulary(read_texts(files.special_map), config.file);
  if (vocabulary.sentences) {
    const SentencePieceModel& model = *vocabulary.sentences;
    for (const auto& [role, id] :
         {std::pair{"unk", model.unknown_id}, std::pair{"bos", model.begin_id},
          std::pair{"eos", model.end_id}, std::pair{"pad", model.padding_id}}) {
      if (id >= 0) ids.set(role, id, *files.model_path);
    }
  }
  // Code Llama, whose files do not say which token ends a turn.
  if (is_llama && config.vocab == 32016u) ids.set("eot", 32010, config.file);

  Metadata out;
  for (const Role& role : kRoles) {
    if (const std::uint32_t* id = ids.find(role.name))
      out.emplace_back(role.id_key, GgufValue(*id));
  }
  for (const Role& role : kRoles) {
    const auto add = roles.adds().find(role.name);
    // Models with this many tokens were trained without a beginning, whatever their files say.
    const bool is_granite = is_llama && config.vocab == 49152u && role.name == "bos";
    if (role.add_key.empty() || (add == roles.adds().end() && !is_granite)) continue;
    out.emplace_back(role.add_key, GgufValue(!is_granite && add->second));
  }
  if (vocabulary.add_space_prefix) {
    out.emplace_back("tokenizer.ggml.add_space_prefix", GgufValue(*vocabulary.add_space_prefix));
  }
  if (const auto found = read_chat_template(files)) {
    add_chat_templates(*found, notes, out);
  }
  return out;
}

}  // namespace tl::saved
