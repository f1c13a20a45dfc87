// The name of the way in which a vocabulary of bytes cuts text into words.
//
// llama.cpp's converter finds it by the tokens that a sample text gets. Here it is found by what
// tokenizer.json says: the steps of its pre_tokenizer, with their regular expressions. Two names
// that cut alike are told apart by what else readers of GGUF do for them.
#include <array>
#include <span>

#include "model/convert_vocab.h"
#include "tl/base/error.h"

namespace tl::saved {

namespace {

// Steps as steps_of() writes them.
constexpr std::string_view kGpt2 = kGpt2Step;
constexpr std::string_view kDigits = kDigitsStep;

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLines = R"([\r\n])";
constexpr std::string_view kDeepseekLetters =
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-"
    "Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-"
    "ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+";
constexpr std::string_view kDeepseekMarks = "\\s?[!-/:-~！-／：-～‘-‟　-。]+";
constexpr std::string_view kTrailing = R"(\s+$)";
constexpr std::string_view kDeepseekEast = "[一-龥ࠀ-一가-퟿]+";
constexpr std::string_view kWords = R"(\s?\p{L}+)";
constexpr std::string_view kMarks = R"(\s?\p{P}+)";
constexpr std::string_view kThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kEast = "[一-龥぀-ゟ゠-ヿ]+";
constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Known {
  std::string_view name;
  std::array<std::string_view, 6> steps;  // the rest is empty
};

constexpr std::array<Known, 11> kKnown = {{
    {"llama-bpe", {kLlama3}},
    {"qwen2", {kQwen2}},
    {"qwen35", {kQwen35}},
    {"tekken", {kTekken}},
    {"gpt-4o", {kGpt4o}},
    {"seed-coder", {kSeedCoder}},
    {"gpt-2", {kGpt2}},
    {"smollm", {kDigits, kGpt2}},
    {"deepseek-llm", {kLines, kDeepseekLetters, kDeepseekMarks, kTrailing, kDeepseekEast, kDigits}},
    {"deepseek-coder", {kLines, kWords, kMarks, kDeepseekEast, kDigits}},
    {"deepseek-v3", {kThreeDigits, kEast, kDeepseek3}},
}};

constexpr int kMostNesting = 8;

// Control characters in an expression, spelled out: some files have "\n", some have the character.
std::string spelled(std::string_view expression) {
  std::string out;
  for (const char c : expression) {
    if (c == '\r') {
      out += "\\r";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string split_step(const Fields& step) {
  const auto pattern = step.object("pattern");
  if (!pattern) step.missing("pattern");
  const auto expression = pattern->text_if("Regex");
  if (!expression) return "a fixed text";
  // Matches stand alone. Removing what is between them is the same where the expression leaves
  // nothing between.
  const std::string behaviour = step.text_if("behavior").value_or("Isolated");
  const bool invert = step.flag_if("invert").value_or(false);
  const bool is_usual = (behaviour == "Isolated" && !invert) || (behaviour == "Removed" && invert);
  return is_usual ? spelled(*expression) : behaviour + " " + spelled(*expression);
}

// In the order in which text passes them.
void add_steps(const Fields& step, int depth, std::vector<std::string>& steps) {
  const std::string type = step.text_if("type").value_or("");
  if (type == "Sequence") {
    const Json* list = step.find("pretokenizers");
    if (list == nullptr) step.missing("pretokenizers");
    if (!list->is_array() || depth == kMostNesting) step.fail("is no list of steps");
    for (const Json& item : *list) add_steps(Fields(step.where(), item), depth + 1, steps);
  } else if (type == "Split") {
    steps.push_back(split_step(step));
  } else if (type == "Digits") {
    const bool each = step.flag_if("individual_digits").value_or(false);
    steps.emplace_back(each ? kDigits : "runs of digits");
  } else if (type == "ByteLevel") {
    if (step.flag_if("add_prefix_space").value_or(true)) steps.emplace_back("a leading space");
    if (step.flag_if("use_regex").value_or(true)) steps.emplace_back(kGpt2);
  } else {
    steps.push_back(type.empty() ? "a step without a type" : type);
  }
}

bool matches(const Known& known, std::span<const std::string> steps) {
  std::size_t count = 0;
  while (count < known.steps.size() && !known.steps[count].empty()) ++count;
  if (steps.size() != count) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (steps[i] != known.steps[i]) return false;
  }
  return true;
}

}  // namespace

std::string pre_tokenizer_name(const Fields& tokenizer, std::vector<std::string>& notes) {
  std::vector<std::string> steps;
  if (const auto first = tokenizer.object("pre_tokenizer")) add_steps(*first, 0, steps);
  for (const Known& known : kKnown) {
    if (!matches(known, steps)) continue;
    // Readers take "llama-bpe" to look whole words up before they merge; this one does not.
    const auto model = tokenizer.object("model");
    const bool whole_words = model && model->flag_if("ignore_merges").value_or(false);
    return known.name == "llama-bpe" && !whole_words ? "smaug-bpe" : std::string(known.name);
  }
  std::string text;
  for (const std::string& step : steps) text += (text.empty() ? "" : ", then ") + step;
  notes.push_back(join(tokenizer.where(),
                       ": the way text is cut into words is not known, so tokenizer.ggml.pre is "
                       "'default' and some texts will have other tokens; it is: ",
                       text.empty() ? "none" : text));
  return "default";
}

std::vector<std::string> pre_tokenizer_steps(std::string_view name) {
  std::string names;
  for (const Known& known : kKnown) {
    const bool is_smaug = name == "smaug-bpe" && known.name == "llama-bpe";  // which cuts alike
    if (known.name == name || is_smaug) {
      std::vector<std::string> steps;
      for (const std::string_view step : known.steps) {
        if (!step.empty()) steps.emplace_back(step);
      }
      return steps;
    }
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw Error(ErrorKind::Unsupported, "tokenizer.json", "how '", name,
              "' is written there is not known; it is for ", names);
}

}  // namespace tl::saved
