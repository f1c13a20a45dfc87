// Chat templates: what they render, beside Jinja2 itself, and what they are kept from.
#include "tl/model/chat_template.h"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "model/gguf_files.h"
#include "model/jinja/evaluate.h"
#include "model/vocabularies.h"

namespace tl::test {

namespace {

using Json = nlohmann::ordered_json;

std::string rendered(std::string_view source, std::string_view names = "{}") {
  return ChatTemplate::parse(source).render_json(names);
}

void refused(ErrorKind kind, std::string_view source, const std::string& text) {
  expect_error(kind, text, [&] { rendered(source); });
}
void wrong(std::string_view source, const std::string& text) {
  refused(ErrorKind::BadArgument, source, text);
}
void unknown(std::string_view source, const std::string& text) {
  refused(ErrorKind::Unsupported, source, text);
}

ChatInput two_turns() {
  ChatInput input;
  input.messages = {
      {"system", "Be kind."}, {"user", "Hi"}, {"assistant", "Hello!"}, {"user", "Who?"}};
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  return input;
}

}  // namespace

// What Jinja2 renders of each template was written down with it; null stands for an error.
TEST(Templates, RenderWhatJinjaRenders) {
  std::ifstream in(source_folder() / "tests/model/data/template_cases.json");
  const Json data = Json::parse(in);
  const std::string names = data["context"].dump();
  ASSERT_GT(data["cases"].size(), 1000U);
  for (const Json& each : data["cases"]) {
    const auto source = each[0].get<std::string>();
    try {
      const std::string text = rendered(source, names);
      EXPECT_EQ(text, each[1].is_null() ? "an error" : each[1].get<std::string>()) << source;
    } catch (const Error& error) {
      EXPECT_TRUE(each[1].is_null()) << source << "\n" << error.what();
    }
  }
}

TEST(Templates, ErrorsNameTheConstructWithLineAndColumn) {
  unknown("a\n {% include 'x' %}", "template: line 2, column 5: the tag 'include' is not known");
  unknown("{{ 1 }}\n{{ 'x' | frobnicate }}",
          "template: line 2, column 10: the filter 'frobnicate' is not known");
  unknown("{{ 1 is perfect }}", "template: line 1, column 9: the test 'perfect' is not known");
  unknown("{{ [1] | map('frobnicate') | list }}", "the filter 'frobnicate' is not known");
  unknown("{% for x in [] recursive %}{% endfor %}",
          "line 1, column 16: loops that are 'recursive'");
  unknown("{{ '%q' % 1 }}", "the format '%q' is not known");
  wrong("{{ 'x'.frobnicate() }}", "line 1, column 18: 'str object' has no attribute 'frobnicate'");
  wrong("é{{ nothing.at.all }}", "line 1, column 13: 'nothing' is undefined");
  wrong("{{ frobnicate(1) }}", "line 1, column 14: 'frobnicate' is undefined");
  wrong("{% if 1 %}\nx", "line 2, column 2: the template ends where 'endif' was expected");
  wrong("{% for x in y %}{% endif %}",
        "line 1, column 20: 'endif' has no beginning here; expected is 'endfor'");
  wrong("{{ 1 + }}", "line 1, column 8: an expression was expected, not '}}'");
  wrong("{{ 'a", "line 1, column 4: the text has no end '");
  wrong("\n{{ (1 }}", "there is no bracket that '}' closes");
  wrong("{{ raise_exception('no ' ~ 'system') }}", "line 1, column 19: no system");
  wrong("{% set x.y = 1 %}", "line 1, column 8: 'x' is not a namespace");
  wrong("{{ 9999999999999999999 }}", "9999999999999999999 is too large");
  wrong("{{ 9223372036854775807 + 1 }}", "a whole number has more than 64 bits");
  wrong("{{ 2 ** 64 }}", "a whole number has more than 64 bits");
}

TEST(Templates, FunctionsAreShownByTheirNames) {
  EXPECT_EQ(rendered("{% macro greet() %}{{ caller }}{% endmacro %}{{ greet }} {% call greet() "
                     "%}{% endcall %}"),
            "<function greet> <function caller>");
  EXPECT_EQ(rendered("{{ range }} {{ 'x'.upper }} {% for i in [1] %}{{ loop }}{% endfor %}"),
            "<function range> <function upper> <LoopContext 1/1>");
}

// An unknown filter in a branch that is not taken does not matter.
TEST(Templates, WhatIsNotReachedMayBeUnknown) {
  EXPECT_EQ(rendered("{% if false %}{{ 1 | frobnicate }}{% endif %}ok"), "ok");
}

// ---- hostile templates: each ends soon, in an error, in little memory

namespace {

// With limits of a hundredth, so that the tests take no time.
void stopped(std::string_view source, const std::string& text) {
  jinja::Heap heap{jinja::Limits{.steps = 200'000, .bytes = 4 << 20}};
  jinja::Evaluator evaluator(heap, [] { return std::time_t{0}; });
  const jinja::Body body = jinja::parse(source);
  expect_error(ErrorKind::BadArgument, text, [&] { evaluator.render(body); });
}

}  // namespace

TEST(HostileTemplates, AreStoppedInTime) {
  stopped("{% for a in range(9999) %}{% for b in 'abcdefgh' %}{{ a * 2 }}{% endfor %}{% endfor %}",
          "it takes too long: more than 200000 steps");
  wrong("{% for a in range(99999) %}{% for b in range(999) %}{{ a }}{% endfor %}{% endfor %}",
        "template: ");
  stopped("{% set s = 'ab' * 100000 %}{% for i in range(9999) %}{{ s[199999] }}{% endfor %}",
          "it takes too long");
  stopped("{% set s = 'ab' * 100000 %}{% for i in range(9999) %}{{ 'q' in s }}{% endfor %}",
          "it takes too long");
  stopped("{{ range(9000) | list | unique | list | length }}", "it takes too long");
  stopped("{% set d = {} %}{% for i in range(9000) %}{% set _ = d.update({i: i}) %}{% endfor %}",
          "it takes too long");
  // Values that share their parts look twice as large with each step.
  constexpr std::string_view kDoubling =
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  stopped(join(kDoubling, "{{ ns.x }}"), "template: ");
  stopped(join(kDoubling, "{{ ns.x | tojson }}"), "template: ");
  stopped(join(kDoubling, "{{ ns.x == ns.y }}"), "it takes too long");
}

TEST(HostileTemplates, CannotFillTheMemory) {
  stopped(
      "{% set ns = namespace(x='a') %}{% for a in range(999) %}{% set ns.x = ns.x * 2 %}{% endfor "
      "%}",
      "too much memory");
  stopped(
      "{% set ns = namespace(x='a') %}{% for a in range(999) %}{% set ns.x = ns.x ~ ns.x %}{% "
      "endfor %}",
      "too much memory");
  stopped(
      "{% set ns = namespace(x=[1]) %}{% for a in range(999) %}{% set ns.x = ns.x + ns.x %}{% "
      "endfor %}",
      "too much memory");
  stopped("{% for a in range(999) %}{{ 'x' * 9999 }}{% endfor %}", "too much memory");
  stopped(
      "{% macro m() %}{{ 'x' * 9999 }}{% endmacro %}{% for a in range(999) %}{% set x = m() %}{% "
      "endfor %}",
      "too much memory");
  wrong("{{ 'x' * 999999999999 }}", "it needs too much memory: more than 268435");
  stopped("{{ [1] * 999999999999 }}", "too much memory");
  stopped("{{ ('a' * 99999) | replace('a', 'b' * 99999) }}", "too much memory");
  stopped("{{ ('a' * 99999).replace('', 'b' * 99999) }}", "too much memory");
  stopped("{{ ('ab' * 9999) | list | join('x' * 9999) }}", "too much memory");
  stopped("{{ ('x' * 9999).join('ab' * 9999) }}", "too much memory");
  stopped("{{ 'a'.center(99999999999999) }}", "too much memory");
  stopped("{{ 'a'.zfill(9999999999) }}", "too much memory");
  stopped("{{ ('\n' * 9999) | indent(9999, blank=true) }}", "too much memory");
  stopped("{{ range(9999) | list | tojson(separators=('x' * 9999, ':')) }}", "too much memory");
  stopped("{{ [[[[[[1]]]]]] | tojson(indent='x' * 999999) }}", "too much memory");
  stopped("{{ 'a' | indent(999999999) }}", "too much");
  stopped("{{ '%999999999d' % 1 }}", "too wide");
  stopped("{{ '{:999999999}'.format(1) }}", "too wide");
  stopped("{{ range(10000000) }}", "'range' gives at most 100000 numbers");
}

TEST(HostileTemplates, CannotGoTooDeep) {
  wrong("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "evaluations are nested more than 400 deep");
  wrong("{% macro f(x) %}{% call(y) f(x) %}{% endcall %}{% endmacro %}{{ f(1) }}",
        "nested more than");
  wrong(
      "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}{{ ns.x }}",
      "values are nested more than 100 deep");
  wrong(
      "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}{{ ns.x | tojson }}",
      "nested too deep");
  wrong("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
        "values are nested more than 100 deep");
  wrong("{% set x = [] %}{% set _ = x.append(x) %}{{ x }}", "values are nested more than 100 deep");
  const auto repeated = [](std::string_view text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  wrong("{{ " + repeated("(", 5000), "brackets are nested more than 200 deep");
  wrong("{{ " + repeated("(", 150) + "1" + repeated(")", 150) + " }}", "nested more than 150 deep");
  wrong("{{ " + repeated("[", 199) + repeated("]", 199) + " }}", "nested more than 150 deep");
  wrong("{{ " + repeated("not ", 5000) + "1 }}", "nested more than 150 deep");
  wrong("{{ " + repeated("- ", 5000) + "1 }}", "nested more than 150 deep");
  wrong("{{ 1" + repeated(" + 1", 5000) + " }}", "nested more than 150 deep");
  wrong("{{ x" + repeated(".x", 5000) + " }}", "nested more than 150 deep");
  wrong("{{ x" + repeated("|trim", 5000) + " }}", "nested more than 150 deep");
  wrong("{{ 1" + repeated(" if 1 else 1", 5000) + " }}", "nested more than 150 deep");
  wrong(repeated("{% if 1 %}", 5000), "blocks are nested more than 100 deep");
  wrong("{% set " + repeated("(", 5000), "nested more than");
  EXPECT_EQ(rendered("{{ 'a'" + repeated(" ~ 'a'", 5000) + " }}").size(),
            5001U);  // joined in one go
}

TEST(HostileTemplates, TheSourceHasALimitToo) {
  wrong(std::string(5'000'000, 'x'), "at most 4194304 are read");
}

// ---- chats

TEST(ChatTemplates, GiveTemplatesTheMessagesToolsAndTokens) {
  const ChatTemplate chat = ChatTemplate::parse(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}|{{ m.content }}|{{ m.tool_calls | "
      "tojson if m.tool_calls is "
      "defined }}|{{ m.name }}]{% endfor %}{{ tools | tojson }}{{ documents }}{{ color }}{{ "
      "add_generation_prompt }}{{ eos_token }}");
  ChatInput input;
  input.messages = {{"user", "x < y"},
                    {"assistant", "", R"({"content": null, "tool_calls": [{"id": 1}]})"},
                    {"tool", "5", R"({"name": "f"})"}};
  input.tools = R"([{"name": "f", "z": 1, "a": 2}])";
  input.variables = R"({"color": "red"})";
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  EXPECT_EQ(
      chat.render(input),
      R"(<s>[user|x < y||][assistant|None|[{"id": 1}]|][tool|5||f][{"name": "f", "z": 1, "a": 2}]NoneredTrue</s>)");
  input.tools.clear();
  input.variables.clear();
  input.add_generation_prompt = false;
  input.messages.clear();
  EXPECT_EQ(chat.render(input), "<s>nullNoneFalse</s>");
}

TEST(ChatTemplates, RefuseWhatIsNotJson) {
  const ChatTemplate chat = ChatTemplate::parse("{{ tools }}");
  ChatInput input;
  input.tools = "[1, ";
  expect_error(ErrorKind::BadArgument,
               "chat template: the list of tools is not JSON:", [&] { chat.render(input); });
  input.tools = std::string(5000, '[');
  expect_error(ErrorKind::BadArgument, "the list of tools is not JSON: it is nested too deep",
               [&] { chat.render(input); });
  input.tools.clear();
  input.variables = "[]";
  expect_error(ErrorKind::BadArgument, "must be a JSON object, not a list",
               [&] { chat.render(input); });
  input.variables.clear();
  input.messages = {{"user", "", "5"}};
  expect_error(ErrorKind::BadArgument, "what a message has more must be a JSON object, not a int",
               [&] { chat.render(input); });
}

// What a template may use grows with what it is given.
TEST(ChatTemplates, LongChatsAreNotHostile) {
  ChatInput input;
  for (int i = 0; i < 500; ++i) input.messages.push_back({"user", std::string(40'000, 'x')});
  const std::string text = ChatTemplate::builtin("llama3").render(input);
  EXPECT_GT(text.size(), 500U * 40'000U);
}

TEST(ChatTemplates, ContentThatIsNoTextIsKept) {
  const ChatTemplate chat =
      ChatTemplate::parse("{{ messages[0].content | trim | length }}{{ messages[0].content }}");
  ChatInput input;
  input.messages = {{"user", " a\xFF\xC3 "}};
  EXPECT_EQ(chat.render(input), "3 a\xFF\xC3 ");
}

TEST(ChatTemplates, TellTheDateTheyAreGiven) {
  ChatInput input;
  input.now = 1'700'000'000;  // a day in November 2023, everywhere
  EXPECT_EQ(ChatTemplate::parse("{{ strftime_now('%B %Y') }}").render(input), "November 2023");
  input.now.reset();
  EXPECT_EQ(ChatTemplate::parse("{{ strftime_now('%Y') | length }}").render(input), "4");
  expect_error(ErrorKind::BadArgument, "'strftime_now' cannot write",
               [&] { ChatTemplate::parse("{{ strftime_now('%c' * 500) }}").render(input); });
}

TEST(ChatTemplates, BuiltInOnesWriteTheirFamiliesForms) {
  const auto by = [](std::string_view name, const ChatInput& input) {
    return ChatTemplate::builtin(name).render(input);
  };
  const ChatInput input = two_turns();
  EXPECT_EQ(
      by("chatml", input),
      "<|im_start|>system\nBe "
      "kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n"
      "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(by("zephyr", input),
            "<|system|>\nBe "
            "kind.</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello!</s>\n<|user|>\nWho?</"
            "s>\n<|assistant|>\n");
  EXPECT_EQ(
      by("llama2", input),
      "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi [/INST] Hello! </s><s>[INST] Who? [/INST]");
  EXPECT_EQ(by("llama3", input),
            "<s><|start_header_id|>system<|end_header_id|>\n\nBe "
            "kind.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi"
            "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|><|start_"
            "header_id|>user<|end_header_id|>"
            "\n\nWho?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(by("mistral", input), "<s>[INST] Be kind.\n\nHi [/INST] Hello!</s>[INST] Who? [/INST]");
  EXPECT_EQ(
      by("gemma", input),
      "<s><start_of_turn>user\nBe "
      "kind.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n<start_of_turn>user\n"
      "Who?<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(by("phi3", input),
            "<|system|>\nBe "
            "kind.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello!<|end|>\n<|user|>\nWho?<|end|>"
            "\n<|assistant|>\n");
  EXPECT_EQ(by("vicuna", input),
            "Be kind.\n\nUSER: Hi\nASSISTANT: Hello!</s>\nUSER: Who?\nASSISTANT:");
  for (const std::string_view name : ChatTemplate::builtin_names()) {
    EXPECT_NE(by(name, input).find("Who?"), std::string::npos) << name;
  }
  ChatInput tool = input;
  tool.messages.push_back({"tool", "5"});
  expect_error(ErrorKind::BadArgument, "messages of the role tool have no place in this template",
               [&] { by("llama2", tool); });
  expect_error(ErrorKind::BadArgument, "there is no template 'nope'; there are chatml, command-r,",
               [] { ChatTemplate::builtin("nope"); });
}

TEST(ChatTemplates, ComeFromTheModelsFile) {
  VocabularyFile file("llama");
  file.tokens(with_bytes({{"▁"}, {"a"}}));
  EXPECT_FALSE(ChatTemplate::from_gguf(file.open()).has_value());
  file.add_full("tokenizer.chat_template", "{{ bos_token }}plain")
      .add_full("tokenizer.chat_template.tool_use", "{{ eos_token }}tools");
  const GgufFile opened = file.open();
  ChatInput input;
  input.set_tokens(Tokenizer::from_gguf(opened));
  EXPECT_EQ(ChatTemplate::from_gguf(opened)->render(input), "<s>plain");
  EXPECT_EQ(ChatTemplate::from_gguf(opened, "tool_use")->render(input), "</s>tools");
  EXPECT_FALSE(ChatTemplate::from_gguf(opened, "rag").has_value());
  EXPECT_EQ(ChatTemplate::variants(opened), (std::vector<std::string>{"tool_use"}));
  EXPECT_EQ(ChatTemplate::from_gguf(opened)->source(), "{{ bos_token }}plain");
}

}  // namespace tl::test
