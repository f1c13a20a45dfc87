#include "base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tl {

namespace {

// Optimal string alignment distance, over three rows of the usual table.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

}  // namespace

std::string nearest(std::string_view typed, std::span<const std::string> words) {
  std::string best;
  std::size_t fewest = 0;
  for (const std::string& word : words) {
    const std::size_t distance = edits(typed, word);
    // More than a third of the word changed is another word, not a slip.
    if (distance > std::max<std::size_t>(1, word.size() / 3)) continue;
    if (best.empty() || distance < fewest) {
      best = word;
      fewest = distance;
    }
  }
  return best;
}

}  // namespace tl
