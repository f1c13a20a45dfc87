#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace tl::cli {

Progress::Progress() : is_shown_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (is_shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::at(std::size_t index, std::size_t tensors, std::string_view tensor, QType from,
                  QType to) const {
  if (!is_shown_) return;
  fmt::print(stderr, "\r\033[K[{}/{}] {} {} to {}", index + 1, tensors, tensor, name(from),
             name(to));
  std::fflush(stderr);
}

}  // namespace tl::cli
