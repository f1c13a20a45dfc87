// A fuzzer for tokenizers: a vocabulary and a text from the same bytes. A file that is a vocabulary
// encodes any text to ids of its own, and decodes them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/model/gguf.h"
#include "tl/model/tokenizer.h"

namespace {

void require(bool claim) {
  if (!claim) std::abort();
}

void use(const tl::Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {false, true}) {
    const auto ids = tokenizer.encode(text, {.add_special = special, .parse_special = special});
    for (const tl::TokenId id : ids)
      require(id >= 0 && static_cast<std::size_t>(id) < tokenizer.size());
    tokenizer.decode(ids);
    tl::TextStream stream(tokenizer, {.special = special, .is_start = true});
    std::string all;
    for (const tl::TokenId id : ids) all += stream.push(id);
    all += stream.flush();
    require(tl::first_invalid_utf8(all) == all.size());
  }
}

}  // namespace

// The last quarter of the bytes is the text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::size_t file = size - size / 4;
  try {
    const auto opened = tl::GgufFile::from_memory(std::as_bytes(std::span(data, file)), "input");
    use(tl::Tokenizer::from_gguf(opened),
        {reinterpret_cast<const char*>(data) + file, size - file});
  } catch (const tl::Error&) {
  }
  return 0;
}
