#include "model/arch/arch.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "model/arch/reader.h"
#include "model/gguf_cursor.h"
#include "tl/base/error.h"

namespace tl::arch {

namespace {

struct Architecture {
  std::string_view name;  // general.architecture
  DecoderModel (*read)(Reader& reader);
};

constexpr std::array kArchitectures = {
    Architecture{"llama", read_llama},   Architecture{"qwen2", read_qwen2},
    Architecture{"qwen3", read_qwen3},   Architecture{"gemma2", read_gemma2},
    Architecture{"gemma3", read_gemma3}, Architecture{"phi3", read_phi3},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kArchitectures.size()> names;
  std::ranges::transform(kArchitectures, names.begin(), &Architecture::name);
  return names;
}();

}  // namespace

DecoderModel read_model(const GgufFile& file, const ModelWeights& weights, std::int64_t context) {
  const std::string_view name = file.architecture();
  const auto* found = std::ranges::find(kArchitectures, name, &Architecture::name);
  if (found == kArchitectures.end()) {
    std::string known;
    for (const std::string_view each : kNames) known += join(known.empty() ? "" : ", ", each);
    throw Error(ErrorKind::Unsupported, file.parts().front(), "models of the architecture ",
                gguf::Quoted{name}, " are not run; known are ", known);
  }
  Reader reader(file, weights, context);
  DecoderModel model = found->read(reader);
  reader.expect_all_taken();
  return model;
}

}  // namespace tl::arch

namespace tl {

std::span<const std::string_view> decoder_architectures() { return arch::kNames; }

}  // namespace tl
