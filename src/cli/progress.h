// How far a command that goes through a model's tensors is.
#pragma once

#include <cstddef>
#include <string_view>

#include "tl/quant/format.h"

namespace tl::cli {

// One line that is written over on a terminal, and nothing elsewhere.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void at(std::size_t index, std::size_t tensors, std::string_view tensor, QType from,
          QType to) const;

 private:
  bool is_shown_;
};

}  // namespace tl::cli
