#include "tl/logic/table.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "tl/base/error.h"

namespace tl::logic {

namespace {

constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // no tuple: no id is kNoId
constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;
constexpr std::size_t kFirstSlots = 16;

std::uint64_t mix(std::uint64_t x) noexcept {
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93;
  x ^= x >> 32;
  return x;
}

std::uint64_t hash_all(std::span<const Id> values) noexcept {
  std::uint64_t h = values.size();
  for (const Id value : values) h = mix(h ^ value) * kSpread;
  return h;
}

int shift_for(std::size_t slots) noexcept { return 64 - std::countr_zero(slots); }

}  // namespace

// ---- indices

Index::Index(std::vector<std::uint32_t> columns, std::size_t width)
    : columns_(std::move(columns)),
      width_(width),
      slots_(kFirstSlots),
      shift_(shift_for(kFirstSlots)) {}

std::uint64_t Index::key(std::span<const Id> values) noexcept {
  switch (values.size()) {
    case 0:
      return 0;
    case 1:
      return values[0];
    case 2:
      return std::uint64_t{values[0]} << 32 | values[1];
    default:
      return hash_all(values);
  }
}

Index::Slot& Index::slot(std::uint64_t key) noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = (mix(key) * kSpread) >> shift_;
  while (slots_[at].head != kNoRow && slots_[at].key != key) at = (at + 1) & mask;
  return slots_[at];
}

std::uint32_t Index::first(std::uint64_t key) const noexcept {
  return const_cast<Index*>(this)->slot(key).head;  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

void Index::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  shift_ = shift_for(slots_.size());
  for (const Slot& s : old) {
    if (s.head != kNoRow) slot(s.key) = s;
  }
}

void Index::catch_up(const Id* rows, std::size_t count) {
  next_.reserve(count);
  std::vector<Id> values(columns_.size());
  for (std::size_t row = next_.size(); row < count; ++row) {
    for (std::size_t c = 0; c < columns_.size(); ++c) values[c] = rows[row * width_ + columns_[c]];
    const std::uint64_t k = key(values);
    Slot& s = slot(k);
    const bool is_new = s.head == kNoRow;
    next_.push_back(kNoRow);
    if (is_new) {
      s.key = k;
      s.head = static_cast<std::uint32_t>(row);
    } else {
      next_[s.tail] = static_cast<std::uint32_t>(row);
    }
    s.tail = static_cast<std::uint32_t>(row);
    if (is_new && ++used_ * 2 > slots_.size()) grow();
  }
}

// ---- tables

std::uint64_t Table::hash(const Id* tuple) const noexcept {
  switch (width_) {
    case 0:
      return 0;
    case 1:
      return tuple[0];
    case 2:
      return std::uint64_t{tuple[0]} << 32 | tuple[1];
    default:
      return hash_all({tuple, width_});
  }
}

bool Table::is_at(std::uint64_t slot, std::uint64_t hashed, const Id* tuple) const noexcept {
  if (width_ <= 2) return slot == hashed;
  if (slot >> 32 != hashed >> 32) return false;
  return std::equal(tuple, tuple + width_, row(slot & 0xFFFFFFFF));
}

void Table::prefetch(const Id* tuple) const noexcept {
  if (!slots_.empty()) __builtin_prefetch(&slots_[(mix(hash(tuple)) * kSpread) >> shift_]);
}

bool Table::contains(const Id* tuple) const noexcept {
  if (slots_.empty()) return false;
  const std::uint64_t hashed = hash(tuple);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = (mix(hashed) * kSpread) >> shift_; slots_[at] != kEmpty;
       at = (at + 1) & mask) {
    if (is_at(slots_[at], hashed, tuple)) return true;
  }
  return false;
}

bool Table::insert(const Id* tuple) {
  if (size_ * 2 >= slots_.size()) grow();
  const std::uint64_t hashed = hash(tuple);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = (mix(hashed) * kSpread) >> shift_;
  for (; slots_[at] != kEmpty; at = (at + 1) & mask) {
    if (is_at(slots_[at], hashed, tuple)) return false;
  }
  if (size_ + 1 >= kNoRow) {
    throw Error(ErrorKind::Overflow, "logic", "a relation has more than ", kNoRow - 1, " tuples");
  }
  slots_[at] = width_ <= 2 ? hashed : (hashed >> 32 << 32 | size_);
  rows_.insert(rows_.end(), tuple, tuple + width_);
  ++size_;
  return true;
}

void Table::grow() {
  const std::size_t count = std::max(kFirstSlots, slots_.size() * 2);
  slots_.assign(count, kEmpty);
  shift_ = shift_for(count);
  for (std::size_t i = 0; i < size_; ++i) {
    const std::uint64_t hashed = hash(row(i));
    std::size_t at = (mix(hashed) * kSpread) >> shift_;
    while (slots_[at] != kEmpty) at = (at + 1) & (count - 1);
    slots_[at] = width_ <= 2 ? hashed : (hashed >> 32 << 32 | i);
  }
}

bool Table::erase(const Id* tuple) {
  if (!contains(tuple)) return false;
  const std::vector<Id> rows = std::move(rows_);
  const std::size_t count = size_;
  clear();
  for (std::size_t i = 0; i < count; ++i) {
    const Id* each = rows.data() + i * width_;
    if (!std::equal(each, each + width_, tuple)) insert(each);
  }
  return true;
}

void Table::clear() {
  rows_.clear();
  slots_.clear();
  size_ = 0;
  indices_.clear();
  marks_.clear();
}

const Index& Table::index(const std::vector<std::uint32_t>& columns) {
  std::unique_ptr<Index>& found = indices_[columns];
  if (!found) found = std::make_unique<Index>(columns, width_);
  found->catch_up(rows_.data(), size_);
  return *found;
}

std::uint32_t Table::find(const Id* tuple) {
  if (!contains(tuple)) return kNoRow;
  std::vector<std::uint32_t> columns(width_);
  std::iota(columns.begin(), columns.end(), 0U);
  const Index& all = index(columns);
  std::uint32_t at = all.first(Index::key({tuple, width_}));
  while (at != kNoRow && !std::equal(tuple, tuple + width_, row(at))) at = all.next(at);
  return at;
}

void Table::mark(std::uint32_t round) {
  if (!marks_.empty() && marks_.back().second == size_) marks_.pop_back();
  marks_.emplace_back(round, size_);
}

std::uint32_t Table::round(std::size_t row) const noexcept {
  const auto after =
      std::upper_bound(marks_.begin(), marks_.end(), row,
                       [](std::size_t r, const auto& mark) { return r < mark.second; });
  return after == marks_.begin() ? 0 : std::prev(after)->first;
}

std::size_t Table::rows_before(std::uint32_t round) const noexcept {
  const auto at =
      std::lower_bound(marks_.begin(), marks_.end(), round,
                       [](const auto& mark, std::uint32_t r) { return mark.first < r; });
  return at == marks_.end() ? size_ : at->second;
}

}  // namespace tl::logic
