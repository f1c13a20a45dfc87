// What a template may use up. Templates come with model files, from strangers: everything they do
// is counted, so that none can hang the process or fill its memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tl/base/error.h"

namespace tl::jinja {

struct Limits {
  // Evaluations, loop rounds, comparisons; 64 bytes looked at are one.
  std::uint64_t steps = 20'000'000;
  std::uint64_t bytes = 256ULL << 20;  // of all texts and lists made, kept or not
  std::size_t depth = 400;             // evaluations inside of each other
  std::size_t value_depth = 100;       // lists in lists
};

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  const Limits& limits() const noexcept { return limits_; }
  void step(std::uint64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.steps) refuse("it takes too long: more than ", limits_.steps, " steps");
  }
  void look_at(std::size_t bytes) { step(1 + bytes / 64); }
  void take(std::size_t bytes) {
    if (bytes > limits_.bytes - bytes_) {
      refuse("it needs too much memory: more than ", limits_.bytes, " bytes");
    }
    bytes_ += bytes;
    look_at(bytes);
  }
  template <class... Parts>
  [[noreturn]] static void refuse(const Parts&... parts) {
    throw Error(ErrorKind::BadArgument, "template", parts...);
  }

 private:
  Limits limits_;
  std::uint64_t steps_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace tl::jinja
