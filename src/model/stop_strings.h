// Texts that end an answer, found in a stream of pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tl {

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops);  // none of them empty

  // What can be shown of the text so far. What may be the beginning of a stop string is held back
  // until more has come. How the text was cut into pieces does not matter: of several stop strings
  // the one that is complete first counts, and of those the longest.
  std::string push(std::string_view piece);
  std::string flush();  // what was held back, when no more comes; nothing after a stop string
  bool found() const noexcept { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace tl
