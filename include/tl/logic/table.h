// Sets of tuples of ids, and indices that find the tuples with given values in some columns.
//
// Tuples keep the order in which they came and are never taken out one by one, so "what was there
// before this round" is a number of rows. An index is brought up to date when a round begins; rows
// that come later are not in it until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tl/logic/symbols.h"

namespace tl::logic {

inline constexpr std::uint32_t kNoRow = 0xFFFFFFFF;

// Rows by the values of one or more columns. Up to two columns the key is exact; with more it is a
// hash, and who asks compares the columns.
class Index {
 public:
  Index(std::vector<std::uint32_t> columns, std::size_t width);

  const std::vector<std::uint32_t>& columns() const noexcept { return columns_; }
  static std::uint64_t key(std::span<const Id> values) noexcept;
  std::uint32_t first(std::uint64_t key) const noexcept;  // the oldest row; kNoRow: none
  std::uint32_t next(std::uint32_t row) const noexcept { return next_[row]; }  // a newer one
  void catch_up(const Id* rows, std::size_t count);

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t head = kNoRow;
    std::uint32_t tail = kNoRow;
  };
  Slot& slot(std::uint64_t key) noexcept;
  void grow();

  std::vector<std::uint32_t> columns_;
  std::size_t width_;
  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  int shift_ = 0;
  std::vector<std::uint32_t> next_;
};

class Table {
 public:
  explicit Table(std::size_t width) : width_(width) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  std::size_t width() const noexcept { return width_; }
  std::size_t size() const noexcept { return size_; }
  const Id* row(std::size_t i) const noexcept { return rows_.data() + i * width_; }
  std::span<const Id> tuple(std::size_t i) const noexcept { return {row(i), width_}; }

  bool insert(const Id* tuple);  // false when it was there
  bool contains(const Id* tuple) const noexcept;
  void prefetch(const Id* tuple) const noexcept;
  bool erase(const Id* tuple);  // slow: the set is made again
  void clear();

  // With every row that is there now. Valid as long as the table is.
  const Index& index(const std::vector<std::uint32_t>& columns);
  std::uint32_t find(const Id* tuple);  // its row, through an index of all columns

  // In which round rows came: rows from now on belong to `round`. Rows before the first mark are of
  // round 0.
  void mark(std::uint32_t round);
  std::uint32_t round(std::size_t row) const noexcept;
  std::size_t rows_before(std::uint32_t round) const noexcept;

 private:
  std::uint64_t hash(const Id* tuple) const noexcept;
  bool is_at(std::uint64_t slot, std::uint64_t hashed, const Id* tuple) const noexcept;
  void grow();

  std::size_t width_;
  std::size_t size_ = 0;
  std::vector<Id> rows_;
  // Up to two columns a slot holds the tuple itself, so that looking costs one cache line; with
  // more it holds a piece of the hash and the row.
  std::vector<std::uint64_t> slots_;
  int shift_ = 0;
  std::map<std::vector<std::uint32_t>, std::unique_ptr<Index>> indices_;
  std::vector<std::pair<std::uint32_t, std::size_t>> marks_;  // round, its first row
};

}  // namespace tl::logic
