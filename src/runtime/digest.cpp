#include "runtime/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tl {

namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4).
constexpr std::array<std::uint32_t, 64> kRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* at) noexcept {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | std::to_integer<std::uint32_t>(at[i]);
  return word;
}

}  // namespace

void Digest::block(const std::byte* bytes) noexcept {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(bytes + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15];
    const std::uint32_t b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                              ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const std::uint32_t two =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const std::array<std::uint32_t, 8> sums{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += sums[i];
}

void Digest::add(std::span<const std::byte> bytes) noexcept {
  total_bytes_ += bytes.size();
  if (pending_bytes_ > 0) {
    const std::size_t part = std::min(bytes.size(), pending_.size() - pending_bytes_);
    std::copy_n(bytes.begin(), part,
                pending_.begin() + static_cast<std::ptrdiff_t>(pending_bytes_));
    pending_bytes_ += part;
    bytes = bytes.subspan(part);
    if (pending_bytes_ < pending_.size()) return;
    block(pending_.data());
    pending_bytes_ = 0;
  }
  for (; bytes.size() >= pending_.size(); bytes = bytes.subspan(pending_.size())) {
    block(bytes.data());
  }
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  pending_bytes_ = bytes.size();
}

void Digest::add(std::string_view text) noexcept {
  add(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

DigestBytes Digest::finish() noexcept {
  const std::uint64_t bits = total_bytes_ * 8;
  // One set bit, zeros up to the last eight bytes of a block, then the length in bits.
  std::array<std::byte, 72> tail{std::byte{0x80}};
  const std::size_t zeros = (119 - pending_bytes_) % 64;
  for (std::size_t i = 0; i < 8; ++i)
    tail[1 + zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  add(std::span<const std::byte>(tail.data(), 1 + zeros + 8));

  DigestBytes out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return out;
}

std::string hex_digest(std::span<const std::byte> bytes, std::size_t digits) {
  Digest digest;
  digest.add(bytes);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::byte b : digest.finish()) {
    out += kDigits[std::to_integer<std::size_t>(b) >> 4];
    out += kDigits[std::to_integer<std::size_t>(b) & 15];
  }
  out.resize(std::min(digits, out.size()));
  return out;
}

std::string hex_digest(std::string_view text, std::size_t digits) {
  return hex_digest(std::as_bytes(std::span<const char>(text.data(), text.size())), digits);
}

}  // namespace tl
