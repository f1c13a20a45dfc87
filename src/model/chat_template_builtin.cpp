// How families of models write a chat, for files that do not say. A system message stands where the
// family has a place for it; where it has none it goes before the first message of the user.
#include "model/chat_template_builtin.h"

namespace tl {

namespace {

constexpr std::string_view kChatml = R"({%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\n' -}}
{%- endif -%})";

constexpr std::string_view kZephyr = R"({%- for message in messages -%}
{{- '<|' + message.role + '|>\n' + message.content + eos_token + '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|assistant|>\n' -}}
{%- endif -%})";

constexpr std::string_view kLlama3 = R"({{- bos_token -}}
{%- for message in messages -%}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content | trim + '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
{%- endif -%})";

constexpr std::string_view kLlama2 = R"({%- set state = namespace(system='') -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- set state.system = '<<SYS>>\n' + message.content | trim + '\n<</SYS>>\n\n' -%}
{%- elif message.role == 'user' -%}
{{- bos_token + '[INST] ' + state.system + message.content | trim + ' [/INST]' -}}
{%- set state.system = '' -%}
{%- elif message.role == 'assistant' -%}
{{- ' ' + message.content | trim + ' ' + eos_token -}}
{%- else -%}
{{- raise_exception('messages of the role ' + message.role + ' have no place in this template') -}}
{%- endif -%}
{%- endfor -%})";

constexpr std::string_view kMistral = R"({%- set state = namespace(system='') -%}
{{- bos_token -}}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- set state.system = message.content + '\n\n' -%}
{%- elif message.role == 'user' -%}
{{- '[INST] ' + state.system + message.content + ' [/INST]' -}}
{%- set state.system = '' -%}
{%- elif message.role == 'assistant' -%}
{{- ' ' + message.content | trim + eos_token -}}
{%- else -%}
{{- raise_exception('messages of the role ' + message.role + ' have no place in this template') -}}
{%- endif -%}
{%- endfor -%})";

constexpr std::string_view kGemma = R"({%- set state = namespace(system='') -%}
{{- bos_token -}}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- set state.system = message.content | trim + '\n\n' -%}
{%- else -%}
{%- set role = 'model' if message.role == 'assistant' else message.role -%}
{{- '<start_of_turn>' + role + '\n' + (state.system if role == 'user' else '') + message.content | trim + '<end_of_turn>\n' -}}
{%- if role == 'user' %}{% set state.system = '' %}{% endif -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<start_of_turn>model\n' -}}
{%- endif -%})";

constexpr std::string_view kPhi3 = R"({%- for message in messages -%}
{{- '<|' + message.role + '|>\n' + message.content + '<|end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|assistant|>\n' -}}
{%- endif -%})";

constexpr std::string_view kVicuna = R"({%- for message in messages -%}
{%- if message.role == 'system' -%}
{{- message.content + '\n\n' -}}
{%- elif message.role == 'user' -%}
{{- 'USER: ' + message.content + '\n' -}}
{%- else -%}
{{- 'ASSISTANT: ' + message.content + eos_token + '\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- 'ASSISTANT:' -}}
{%- endif -%})";

constexpr std::string_view kCommandR = R"({{- bos_token -}}
{%- for message in messages -%}
{%- set role = 'CHATBOT' if message.role == 'assistant' else message.role | upper -%}
{{- '<|START_OF_TURN_TOKEN|><|' + role + '_TOKEN|>' + message.content | trim + '<|END_OF_TURN_TOKEN|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' -}}
{%- endif -%})";

constexpr std::string_view kDeepseek = R"({{- bos_token -}}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{{- message.content + '\n\n' -}}
{%- elif message.role == 'user' -%}
{{- 'User: ' + message.content + '\n\n' -}}
{%- else -%}
{{- 'Assistant: ' + message.content + eos_token -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- 'Assistant:' -}}
{%- endif -%})";

constexpr std::string_view kGranite = R"({%- for message in messages -%}
{{- '<|start_of_role|>' + message.role + '<|end_of_role|>' + message.content + '<|end_of_text|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|start_of_role|>assistant<|end_of_role|>' -}}
{%- endif -%})";

constexpr BuiltinTemplate kTemplates[] = {
    {"chatml", kChatml},   {"command-r", kCommandR}, {"deepseek", kDeepseek}, {"gemma", kGemma},
    {"granite", kGranite}, {"llama2", kLlama2},      {"llama3", kLlama3},     {"mistral", kMistral},
    {"phi3", kPhi3},       {"vicuna", kVicuna},      {"zephyr", kZephyr}};

}  // namespace

std::span<const BuiltinTemplate> builtin_templates() noexcept { return kTemplates; }

}  // namespace tl
