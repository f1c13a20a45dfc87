// A fuzzer for chat templates: any bytes end in a text or in a tl::Error, soon and in little
// memory.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "model/jinja/evaluate.h"
#include "tl/base/error.h"

namespace {

constexpr std::string_view kNames =
    R"({"messages": [{"role": "user", "content": "Hi é"}, {"role": "assistant", "content": null,
    "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2.5, true]}}}]}], "tools": null,
    "n": 5, "s": " Text ", "l": [3, 1, 2], "d": {"a": 1, "b": {"c": "x"}}, "bos_token": "<s>"})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const tl::jinja::Limits limits{.steps = 20'000, .bytes = 1 << 20};
  try {
    const tl::jinja::Body body = tl::jinja::parse({reinterpret_cast<const char*>(data), size});
    tl::jinja::Heap heap(limits);
    tl::jinja::Evaluator evaluator(heap, [] { return std::time_t{1'700'000'000}; });
    const tl::jinja::Value names = tl::jinja::parse_json(heap, kNames, "names");
    for (const auto& entry : names.dict().entries)
      evaluator.define(entry.key.string(), entry.value);
    if (evaluator.render(body).size() > limits.bytes) std::abort();
  } catch (const tl::Error&) {
  }
  return 0;
}
