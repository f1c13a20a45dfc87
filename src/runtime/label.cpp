#include "tl/runtime/label.h"

#include <deque>
#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tl/base/error.h"

namespace tl {

namespace {

// Never destroyed: memory may be returned, and named, during static destruction.
struct Names {
  std::mutex mutex;
  std::unordered_map<std::string_view, std::uint32_t> ids;
  std::deque<std::string> texts;  // id - 1; a deque, so that views of its strings stay valid
};

Names& names() {
  static auto* const all = new Names;
  return *all;
}

thread_local Label current_label;

}  // namespace

Label::Label(std::string_view text) {
  if (text.empty()) return;
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.ids.find(text); found != all.ids.end()) {
    id_ = found->second;
    return;
  }
  if (all.texts.size() >= std::numeric_limits<std::uint32_t>::max() - 1) {
    throw Error(ErrorKind::Overflow, "label", "too many different labels");
  }
  all.texts.emplace_back(text);
  id_ = static_cast<std::uint32_t>(all.texts.size());
  try {
    all.ids.emplace(all.texts.back(), id_);
  } catch (...) {
    all.texts.pop_back();
    throw;
  }
}

std::string_view Label::text() const noexcept {
  if (id_ == 0) return {};
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  return all.texts[id_ - 1];
}

Label Label::current() noexcept { return current_label; }

LabelScope::LabelScope(Label label) noexcept : previous_(current_label) { current_label = label; }
LabelScope::~LabelScope() { current_label = previous_; }

}  // namespace tl
