// The expressions are those of the models' own tokenizer files; where a model's rule cannot be had
// in one expression that is quick on every text, an equal one is written. White space is Unicode's
// White_Space everywhere, and letters after an apostrophe are ASCII.
#include "model/tokenizer_pre.h"

#include "tl/base/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

namespace tl::tok {

namespace {

constexpr std::string_view kWhere = "tokenizer";

// ---- expressions that several rules share

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kLlama3 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepseek3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCjk = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr std::string_view kHanKana = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view kNotPunctuation =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
constexpr std::string_view kLines = R"([^\n]+|\n+)";

// ---- the passes of each rule

constexpr Cut kDefaultCuts[] = {
    {R"([\p{P}\$\+<=>\^~\|]+)"}, {kGpt2}, {R"(\p{N}+)"}, {"[0-9][0-9][0-9]"}};
constexpr Cut kGpt2Cuts[] = {{kGpt2}};
constexpr Cut kStarcoderCuts[] = {{kDigit}, {kGpt2}};
constexpr Cut kLlama3Cuts[] = {{kLlama3}};
constexpr Cut kQwen2Cuts[] = {{kQwen2}};
constexpr Cut kQwen35Cuts[] = {
    {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)"
     R"(|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
constexpr Cut kDeepseekLlmCuts[] = {
    {R"([\r\n])"},
    {R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
     R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A})"
     R"(\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})"
     R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
     R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"
     R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
     R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
     R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC})"
     R"(\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128})"
     R"(\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183})"
     R"(\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
     R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
     R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
     R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
     R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)"},
    {R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)"},
    {R"(\s+$)"},
    {kCjk},
    {R"(\p{N}+)"}};
constexpr Cut kDeepseekCoderCuts[] = {
    {R"([\r\n])"}, {R"(\s?\p{L}+)"}, {R"(\s?\p{P}+)"}, {kCjk}, {kDigit}};
constexpr Cut kDeepseek3Cuts[] = {{R"(\p{N}{1,3})"}, {kHanKana}, {kDeepseek3Words}};
constexpr Cut kFalconCuts[] = {{R"([\p{P}\$\+<=>\^~\|`]+)"}, {kGpt2}, {"[0-9][0-9][0-9]"}};
constexpr Cut kBloomCuts[] = {{kNotPunctuation}};
constexpr Cut kVikingCuts[] = {{kNotPunctuation}, {kDigit}};
constexpr Cut kTekkenCuts[] = {
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
constexpr Cut kGpt4oCuts[] = {{kGpt4o}};
// Groups of three from the end of a number that no letter follows.
constexpr Cut kTinyAyaCuts[] = {{R"(\p{Nd}++(?![\p{L}\p{M}\p{N}_]))", true}, {kGpt4o}};
constexpr Cut kSuperbpeCuts[] = {{R"(\p{N}+)"}, {R"(\p{Nd}+)", true}};
constexpr Cut kChameleonCuts[] = {{R"(<sentinel:[0-9]+>)"},    {R"(IMGIMG[A-I]{1,4}Z)"},
                                  {R"([\t\n]|    |  )"},       {kDigit},
                                  {R"([\p{P}!-/:-@\[-`{-~])"}, {kGpt2}};
constexpr Cut kBailingCuts[] = {
    {R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N})"
     R"(| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}};
constexpr Cut kSeedCuts[] = {
    {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
     R"(| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
// [A-and-B] classes of the original as what is left of the other categories: no Han in either.
constexpr Cut kKimiCuts[] = {
    {R"(\p{Han}+|[^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}]*)"
     R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}]+)"
     R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
     R"(|[^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}]+)"
     R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}]*)"
     R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
constexpr Cut kAfmoeCuts[] = {
    {R"(\p{N}+)", true},
    {R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF})"
     R"(\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF})"
     R"(\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)"},
    {kDeepseek3Words}};
constexpr Cut kLagunaCuts[] = {{kLines}, {kQwen2}};
constexpr Cut kExaoneMoeCuts[] = {
    {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
     R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?)"
     R"(|\s*[\r\n]|\s+(?!\S)|\s+)"}};
constexpr Cut kYoutuCuts[] = {
    {R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014})"
     R"(\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+)"
     R"(|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)"},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
constexpr Cut kMinicpm5Cuts[] = {
    {R"(\p{N}{1,3})"},
    {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
constexpr Cut kJais2Cuts[] = {
    {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S))"
     R"(|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)"}};
constexpr Cut kLineCuts[] = {{kLines}};

// ---- the rules and their names

using Names = std::string_view;
constexpr Names kDefaultNames[] = {"default"};
constexpr Names kGpt2Names[] = {"gpt-2",       "phi-2",       "mpt",         "olmo",
                                "jais",        "exaone4",     "gigachat",    "mellum",
                                "a.x-4.0",     "modern-bert", "jina-es",     "jina-de",
                                "jina-v2-es",  "jina-v2-de",  "trillion",    "granite-docling",
                                "roberta-bpe", "jina-v1-en",  "jina-v2-code"};
constexpr Names kStarcoderNames[] = {"starcoder", "refact", "command-r",  "smollm",
                                     "codeshell", "exaone", "minerva-7b", "mellum2"};
constexpr Names kLlama3Names[] = {"llama-bpe", "llama3",   "llama-v3", "falcon3",     "falcon-h1",
                                  "pixtral",   "midm-2.0", "lfm2",     "jina-v5-nano"};
constexpr Names kDbrxNames[] = {"dbrx", "smaug-bpe"};
constexpr Names kGlm4Names[] = {"glm4", "chatglm-bpe"};
constexpr Names kQwen2Names[] = {"qwen2",  "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan",
                                 "grok-2", "solar-open",       "kormo",     "f2llmv2"};
constexpr Names kQwen35Names[] = {"qwen35"};
constexpr Names kDeepseekLlmNames[] = {"deepseek-llm"};
constexpr Names kDeepseekCoderNames[] = {"deepseek-coder"};
constexpr Names kDeepseek3Names[] = {"deepseek-v3", "hunyuan-dense", "joyai-llm"};
constexpr Names kFalconNames[] = {"falcon"};
constexpr Names kBloomNames[] = {"bloom", "poro-chat", "gpt3-finnish"};
constexpr Names kVikingNames[] = {"viking"};
constexpr Names kTekkenNames[] = {"tekken"};
constexpr Names kGpt4oNames[] = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"};
constexpr Names kGraniteEmbedNames[] = {"granite-embed-multi-97m"};
constexpr Names kTinyAyaNames[] = {"tiny_aya", "cohere2moe"};
constexpr Names kSuperbpeNames[] = {"superbpe"};
constexpr Names kChameleonNames[] = {"chameleon"};
constexpr Names kBailingNames[] = {"bailingmoe", "bailingmoe2", "llada-moe"};
constexpr Names kSeedNames[] = {"seed-coder"};
constexpr Names kKimiNames[] = {"kimi-k2"};
constexpr Names kAfmoeNames[] = {"afmoe"};
constexpr Names kLagunaNames[] = {"laguna"};
constexpr Names kExaoneMoeNames[] = {"exaone-moe"};
constexpr Names kYoutuNames[] = {"youtu"};
constexpr Names kMinicpm5Names[] = {"minicpm5"};
constexpr Names kJais2Names[] = {"jais-2"};
constexpr Names kGemma4Names[] = {"gemma4", "granite-embed-multi-311m"};
constexpr Names kSarvamNames[] = {"sarvam-moe"};

constexpr PreRule kRules[] = {
    {.names = kDefaultNames, .cuts = kDefaultCuts},
    {.names = kGpt2Names, .cuts = kGpt2Cuts},
    {.names = kStarcoderNames, .cuts = kStarcoderCuts},
    {.names = kLlama3Names, .cuts = kLlama3Cuts, .ignore_merges = true, .add_bos = true},
    {.names = kDbrxNames, .cuts = kLlama3Cuts},
    {.names = kGlm4Names, .cuts = kLlama3Cuts, .no_bos = true},
    {.names = kQwen2Names, .cuts = kQwen2Cuts},
    {.names = kQwen35Names, .cuts = kQwen35Cuts},
    {.names = kDeepseekLlmNames, .cuts = kDeepseekLlmCuts},
    {.names = kDeepseekCoderNames, .cuts = kDeepseekCoderCuts},
    {.names = kDeepseek3Names, .cuts = kDeepseek3Cuts},
    {.names = kFalconNames, .cuts = kFalconCuts},
    {.names = kBloomNames, .cuts = kBloomCuts},
    {.names = kVikingNames, .cuts = kVikingCuts},
    {.names = kTekkenNames, .cuts = kTekkenCuts, .ignore_merges = true, .add_bos = true},
    {.names = kGpt4oNames, .cuts = kGpt4oCuts},
    {.names = kGraniteEmbedNames, .cuts = kGpt4oCuts, .ignore_merges = true},
    {.names = kTinyAyaNames, .cuts = kTinyAyaCuts},
    {.names = kSuperbpeNames, .cuts = kSuperbpeCuts},
    {.names = kChameleonNames, .cuts = kChameleonCuts, .add_bos = true},
    {.names = kBailingNames, .cuts = kBailingCuts},
    {.names = kSeedNames, .cuts = kSeedCuts},
    {.names = kKimiNames, .cuts = kKimiCuts},
    {.names = kAfmoeNames, .cuts = kAfmoeCuts},
    {.names = kLagunaNames, .cuts = kLagunaCuts},
    {.names = kExaoneMoeNames, .cuts = kExaoneMoeCuts},
    {.names = kYoutuNames, .cuts = kYoutuCuts, .ignore_merges = true},
    {.names = kMinicpm5Names, .cuts = kMinicpm5Cuts, .ignore_merges = true},
    {.names = kJais2Names, .cuts = kJais2Cuts},
    {.names = kGemma4Names,
     .cuts = kLineCuts,
     .raw = true,
     .escape_whitespaces = true,
     .whole_lines = true},
    {.names = kSarvamNames, .cuts = kLineCuts, .raw = true, .escape_whitespaces = true},
};

// White_Space of Unicode; the library's own \s has U+180E in it, which is none any more.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// The expression with \s and \S spelled out.
std::string spelled_out(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c != '\\') {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out += c;
      continue;
    }
    const char next = expression[++i];
    if (next == 's') {
      out += in_class ? std::string(kSpaces) : join('[', kSpaces, ']');
    } else if (next == 'S') {
      out += join("[^", kSpaces, ']');  // none is inside of a class
    } else {
      out += c;
      out += next;
    }
  }
  return out;
}

[[noreturn]] void fail(std::string_view what, int code) {
  std::array<PCRE2_UCHAR, 200> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  throw Error(ErrorKind::Unsupported, kWhere, what, ": ",
              reinterpret_cast<const char*>(text.data()));
}

struct FreeMatch {
  void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const noexcept {
    pcre2_match_context_free(context);
  }
};

}  // namespace

std::span<const PreRule> pre_rules() noexcept { return kRules; }

const PreRule& find_pre_rule(std::string_view name) {
  std::vector<std::string> known;
  for (const PreRule& rule : kRules) {
    if (std::find(rule.names.begin(), rule.names.end(), name) != rule.names.end()) return rule;
    known.insert(known.end(), rule.names.begin(), rule.names.end());
  }
  std::sort(known.begin(), known.end());
  std::string list;
  for (const std::string& each : known) list += (list.empty() ? "" : ", ") + each;
  throw Error(ErrorKind::Unsupported, kWhere, "the pre-tokenizer '", name,
              "' (tokenizer.ggml.pre) is not known; there are ", list);
}

struct PreTokenizer::Expression {
  explicit Expression(const Cut& cut) : thousands(cut.thousands) {
    const std::string text = spelled_out(cut.expression);
    int error = 0;
    PCRE2_SIZE at = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                         PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &at, nullptr);
    if (code == nullptr) fail(join("the expression ", cut.expression), error);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where it cannot, expressions are interpreted
  }
  ~Expression() { pcre2_code_free(code); }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;

  // Appends the ends of the words that text[start, end) is cut into.
  void cut(std::string_view text, std::size_t start, std::size_t end, pcre2_match_data* match,
           pcre2_match_context* context, std::vector<std::size_t>& ends) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data() + start);
    const std::size_t size = end - start;
    std::size_t from = 0;
    while (from < size) {
      const int found = pcre2_match(code, subject, size, from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                                    match, context);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) fail("a text cannot be cut into words", found);
      const PCRE2_SIZE* place = pcre2_get_ovector_pointer(match);
      if (place[0] > from) ends.push_back(start + place[0]);
      if (thousands) cut_thousands(text, start + place[0], start + place[1], ends);
      ends.push_back(start + place[1]);
      from = place[1];
    }
    if (from < size) ends.push_back(end);
  }

  // The ends of all groups of three but the last.
  static void cut_thousands(std::string_view text, std::size_t start, std::size_t end,
                            std::vector<std::size_t>& ends) {
    const std::size_t before = ends.size();
    std::size_t characters = 0;
    for (std::size_t i = end; i > start + 1;) {
      --i;
      if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
      if (++characters % 3 == 0) ends.push_back(i);
    }
    std::reverse(ends.begin() + static_cast<std::ptrdiff_t>(before), ends.end());
  }

  pcre2_code* code = nullptr;
  bool thousands;
};

PreTokenizer::PreTokenizer(const PreRule& rule) {
  for (const Cut& cut : rule.cuts) expressions_.push_back(std::make_unique<Expression>(cut));
}

PreTokenizer::~PreTokenizer() = default;

std::vector<std::size_t> PreTokenizer::split(std::string_view text) const {
  if (text.empty()) return {};
  const std::unique_ptr<pcre2_match_context, FreeMatch> context(
      pcre2_match_context_create(nullptr));
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
  if (context == nullptr || match == nullptr) throw std::bad_alloc();
  // Every expression goes over a text a few times at most; what asks for more is an error here.
  const std::uint64_t limit = 1'000'000 + 64 * std::uint64_t{text.size()};
  pcre2_set_match_limit(context.get(), static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                           limit, std::numeric_limits<std::uint32_t>::max())));
  std::vector<std::size_t> ends{text.size()}, next;
  for (const auto& expression : expressions_) {
    next.clear();
    next.reserve(ends.size());
    std::size_t start = 0;
    for (const std::size_t end : ends) {
      expression->cut(text, start, end, match.get(), context.get(), next);
      start = end;
    }
    std::swap(ends, next);
  }
  return ends;
}

}  // namespace tl::tok
