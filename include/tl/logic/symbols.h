// Constants of logic programs as small integers: relations hold ids, and two constants are the same
// exactly when their ids are.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace tl::logic {

using Id = std::uint32_t;
inline constexpr Id kNoId = 0xFFFFFFFF;  // never given to a constant

// A text is an entity's name or a string; 1, 1.0 and true are three different constants.
using Constant = std::variant<std::string, std::int64_t, double, bool>;

std::string to_text(const Constant& constant);         // alice, 3, 2.5, true
std::string_view kind_name(const Constant& constant);  // string, int, float, bool
bool is_number(const Constant& constant) noexcept;     // int or float
double number(const Constant& constant) noexcept;      // of one that is
// Less, equal or greater than 0; numbers by value, texts by their bytes. Throws BadArgument for
// kinds that have no order.
int compare(const Constant& a, const Constant& b);

class Symbols {
 public:
  Id text(std::string_view name);
  Id integer(std::int64_t value);
  Id real(double value);  // every NaN is one constant, and so are 0.0 and -0.0
  Id boolean(bool value);
  Id intern(const Constant& constant);
  Id find_text(std::string_view name) const;  // kNoId when it was never seen

  const Constant& operator[](Id id) const { return constants_[id]; }
  std::size_t size() const noexcept { return constants_.size(); }

 private:
  Id add(Constant constant);

  std::deque<Constant> constants_;  // whose texts stay where they are
  std::unordered_map<std::string_view, Id> texts_;
  std::unordered_map<std::int64_t, Id> integers_;
  std::unordered_map<std::uint64_t, Id> reals_;  // by their bits
  Id booleans_[2] = {kNoId, kNoId};
};

}  // namespace tl::logic
