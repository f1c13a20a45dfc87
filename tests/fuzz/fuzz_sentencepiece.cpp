// A fuzzer for the reader of tokenizer.model: any bytes end in a vocabulary or in a tl::Error, and
// what is read lies in the bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "model/sentencepiece.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace {

void require(bool claim) {
  if (!claim) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto model = tl::saved::read_sentencepiece("input", std::as_bytes(std::span(data, size)));
    require(!model.pieces.empty() && model.pieces.size() <= size / 5);  // the least a piece takes
    const char* begin = reinterpret_cast<const char*>(data);
    for (const auto& piece : model.pieces) {
      require(piece.text.data() >= begin && piece.text.data() + piece.text.size() <= begin + size);
      require(!piece.text.empty() && tl::first_invalid_utf8(piece.text) == piece.text.size());
      require(piece.score == piece.score);
      require(piece.type >= tl::saved::TokenType::Normal &&
              piece.type <= tl::saved::TokenType::Byte);
    }
  } catch (const tl::Error& error) {
    require(error.kind == tl::ErrorKind::BadFile);
  }
  return 0;
}
