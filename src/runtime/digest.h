// SHA-256, for names and checks of cached and packed bytes.
//
// A cryptographic hash is more than a cache needs, but with it two texts that differ never meet
// under one name, it has published test vectors, and at a few hundred MB/s it costs less than
// reading the file did.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tl {

using DigestBytes = std::array<std::byte, 32>;

class Digest {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  void add(std::string_view text) noexcept;
  DigestBytes finish() noexcept;  // once; the object is spent afterwards

 private:
  void block(const std::byte* bytes) noexcept;  // 64 bytes

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  std::size_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

// The first `digits` hexadecimal digits of the digest of `bytes`.
std::string hex_digest(std::span<const std::byte> bytes, std::size_t digits = 64);
std::string hex_digest(std::string_view text, std::size_t digits = 64);

}  // namespace tl
