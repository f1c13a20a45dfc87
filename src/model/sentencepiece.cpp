#include "model/sentencepiece.h"

#include <cmath>
#include <string>

#include "base/little_endian.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::saved {

namespace {

enum class Wire : std::uint8_t { Varint = 0, Eight = 1, Bytes = 2, Four = 5 };

struct Field {
  std::uint32_t number = 0;
  Wire wire = Wire::Varint;
  std::uint64_t at = 0;              // of the tag, from the start of the file
  std::uint64_t value = 0;           // of a varint
  std::span<const std::byte> bytes;  // of the others
  std::uint64_t bytes_at = 0;        // where they are in the file
};

// The fields of one message, which is a part of a file.
class Message {
 public:
  Message(std::string_view file, std::span<const std::byte> bytes, std::uint64_t start)
      : file_(file), bytes_(bytes), start_(start) {}

  template <class... Parts>
  [[noreturn]] void fail(std::uint64_t at, const Parts&... parts) const {
    throw Error(ErrorKind::BadFile, file_, "byte ", at, ": ", parts...);
  }

  std::optional<Field> next() {
    if (at_ == bytes_.size()) return std::nullopt;
    Field field;
    field.at = start_ + at_;
    const std::uint64_t tag = varint();
    if (tag > UINT32_MAX || tag >> 3 == 0) fail(field.at, "no field has the tag ", tag);
    field.number = static_cast<std::uint32_t>(tag >> 3);
    switch (tag & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        take(field, 8);
        break;
      case 2:
        take(field, varint());
        break;
      case 5:
        take(field, 4);
        break;
      default:
        fail(field.at, "field ", field.number, " has the wire type ", tag & 7,
             ", which is not used");
    }
    field.wire = static_cast<Wire>(tag & 7);
    return field;
  }

  // ---- a field as what it must be
  Message message(const Field& field, std::string_view what) const {
    check(field, Wire::Bytes, what);
    return {file_, field.bytes, field.bytes_at};
  }
  std::string_view text(const Field& field, std::string_view what) const {
    check(field, Wire::Bytes, what);
    const std::string_view text(reinterpret_cast<const char*>(field.bytes.data()),
                                field.bytes.size());
    if (const std::size_t bad = first_invalid_utf8(text); bad != text.size()) {
      fail(field.bytes_at + bad, "the ", what, " is not UTF-8");
    }
    return text;
  }
  float number(const Field& field, std::string_view what) const {
    check(field, Wire::Four, what);
    const auto value = files::load_number<float>(field.bytes.data());
    if (!std::isfinite(value)) fail(field.at, "the ", what, " is ", value);
    return value;
  }
  std::uint64_t choice(const Field& field, std::uint64_t most, std::string_view what) const {
    check(field, Wire::Varint, what);
    if (field.value < 1 || field.value > most) {
      fail(field.at, "the ", what, " is ", field.value, "; 1 to ", most, " are known");
    }
    return field.value;
  }
  bool flag(const Field& field, std::string_view what) const {
    check(field, Wire::Varint, what);
    return field.value != 0;
  }
  // An int32: negative ones are written with 64 bits.
  std::int32_t id(const Field& field, std::string_view what) const {
    check(field, Wire::Varint, what);
    const auto value = static_cast<std::int64_t>(field.value);
    if (value < INT32_MIN || value > INT32_MAX) fail(field.at, "the ", what, " is ", value);
    return static_cast<std::int32_t>(value);
  }

 private:
  std::uint64_t varint() {
    const std::uint64_t begin = start_ + at_;
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) fail(begin, "a number is cut off");
      const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail(begin, "a number has more than 64 bits");
  }

  void take(Field& field, std::uint64_t size) {
    const std::uint64_t left = bytes_.size() - at_;
    if (size > left) {
      fail(field.at, "field ", field.number, " has ", size, " bytes, and ", left, " are left");
    }
    field.bytes_at = start_ + at_;
    field.bytes = bytes_.subspan(at_, size);
    at_ += size;
  }

  void check(const Field& field, Wire wire, std::string_view what) const {
    if (field.wire == wire) return;
    fail(field.at, "the ", what, " has the wire type ", static_cast<unsigned>(field.wire), ", not ",
         static_cast<unsigned>(wire));
  }

  std::string_view file_;
  std::span<const std::byte> bytes_;
  std::uint64_t start_;  // of the message in the file
  std::size_t at_ = 0;
};

SentencePieceModel::Piece read_piece(Message in, std::uint64_t at) {
  SentencePieceModel::Piece piece;
  while (const auto field = in.next()) {
    switch (field->number) {
      case 1:
        piece.text = in.text(*field, "text of a piece");
        break;
      case 2:
        piece.score = in.number(*field, "score of a piece");
        break;
      case 3:
        piece.type = static_cast<TokenType>(in.choice(*field, 6, "type of a piece"));
        break;
      default:
        break;
    }
  }
  if (piece.text.empty()) in.fail(at, "a piece has no text");
  return piece;
}

void read_trainer(Message in, SentencePieceModel& model) {
  while (const auto field = in.next()) {
    switch (field->number) {
      case 3:
        model.kind = static_cast<SentencePieceModel::Kind>(in.choice(*field, 4, "kind of model"));
        break;
      case 40:
        model.unknown_id = in.id(*field, "id of unknown");
        break;
      case 41:
        model.begin_id = in.id(*field, "id of the beginning");
        break;
      case 42:
        model.end_id = in.id(*field, "id of the end");
        break;
      case 43:
        model.padding_id = in.id(*field, "id of padding");
        break;
      default:
        break;
    }
  }
}

void read_normalizer(Message in, SentencePieceModel& model) {
  while (const auto field = in.next()) {
    if (field->number == 3) model.add_dummy_prefix = in.flag(*field, "flag of a leading space");
    if (field->number == 4) {
      model.remove_extra_whitespaces = in.flag(*field, "flag of extra spaces");
    }
  }
}

}  // namespace

SentencePieceModel read_sentencepiece(std::string_view file, std::span<const std::byte> bytes) {
  SentencePieceModel model;
  Message in(file, bytes, 0);
  while (const auto field = in.next()) {
    switch (field->number) {
      case 1:
        model.pieces.push_back(read_piece(in.message(*field, "list of pieces"), field->at));
        break;
      case 2:
        read_trainer(in.message(*field, "part about training"), model);
        break;
      case 3:
        read_normalizer(in.message(*field, "part about normalizing"), model);
        break;
      default:
        break;
    }
  }
  if (model.pieces.empty()) in.fail(0, "there is no piece: this is no SentencePiece model");
  return model;
}

}  // namespace tl::saved
