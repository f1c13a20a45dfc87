#include "lang/sparse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "lang/convert.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"

namespace tl::lang {

namespace {

using Places = std::vector<std::int64_t>;

bool has_letter(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

tl::Tensor id_tensor(const Places& ids, const Device& device) {
  return tl::Tensor::from(ids, device);
}

// Halves are summed in f32, whatever they are kept in.
std::vector<tl::Tensor> in_one_dtype(std::vector<tl::Tensor> list) {
  DType dtype = DType::F32;
  for (const tl::Tensor& x : list) dtype = promote(dtype, x.dtype());
  for (tl::Tensor& x : list) x = to_dtype(x, dtype);
  return list;
}

[[noreturn]] void throw_too_large(const char* what) {
  throw RuntimeError(tl::join(what, " would have more than ", kMostJoined,
                              " elements; put the smaller relations of the rule first, or ask for "
                              "less of it"));
}

// A number for the places in some columns of a row, different for different ones.
class Key {
 public:
  Key(const std::string& letters, const std::string& chosen,
      const std::map<char, std::int64_t>& sizes) {
    for (const char letter : chosen) {
      columns_.push_back(letters.find(letter));
      sizes_.push_back(sizes.at(letter));
      if (__builtin_mul_overflow(count_, std::max<std::int64_t>(sizes_.back(), 1), &count_)) {
        throw RuntimeError("a relation of a rule has more places than 64 bits can count");
      }
    }
  }
  std::int64_t of(const std::int64_t* row) const {
    std::int64_t key = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) key = key * sizes_[i] + row[columns_[i]];
    return key;
  }
  std::int64_t count() const noexcept { return count_; }

 private:
  std::vector<std::size_t> columns_;
  std::vector<std::int64_t> sizes_;
  std::int64_t count_ = 1;
};

// Rows of places with values: what is left of the factors that were joined so far.
struct Joined {
  std::string letters;
  Places places;
  tl::Tensor values;
  std::size_t count = 0;

  const std::int64_t* row(std::size_t i) const { return places.data() + i * letters.size(); }
};

std::string letters_in_both(const std::string& a, const std::string& b) {
  std::string out;
  for (const char letter : a) {
    if (has_letter(b, letter) && !has_letter(out, letter)) out += letter;
  }
  return out;
}

class Joiner {
 public:
  Joiner(Context& context, std::span<const Factor> factors, std::string output)
      : context_(context), factors_(factors), output_(std::move(output)) {
    for (const Factor& f : factors) {
      const std::vector<std::int64_t> sizes = sizes_of(f.value);
      for (std::size_t d = 0; d < sizes.size(); ++d) sizes_[f.letters[d]] = sizes[d];
    }
  }

  tl::Tensor dense() {
    const Joined joined = join_all(false);
    return finished(joined);
  }

  SparseTensor sparse() {
    Joined joined = join_all(true);
    joined = only(joined, output_);
    SparseTensor out;
    out.sizes = sizes_for(output_);
    out.places = std::move(joined.places);
    out.values = joined.values;
    return out;
  }

 private:
  std::vector<std::int64_t> sizes_for(const std::string& letters) const {
    std::vector<std::int64_t> out;
    for (const char letter : letters) out.push_back(sizes_.at(letter));
    return out;
  }

  // ---- rows of one factor

  Joined rows_of(const std::string& letters, const SparseTensor& x) const {
    return without_repeats({letters, x.places, x.values, x.count()});
  }

  // All elements of a dense tensor; those that are 0 are left out where nothing can flow to them.
  Joined rows_of(const std::string& letters, const tl::Tensor& x) const {
    const tl::Tensor flat = reshape(x, {-1});
    Places kept;
    if (x.has_history()) {
      kept.resize(static_cast<std::size_t>(flat.count()));
      std::iota(kept.begin(), kept.end(), 0);
    } else {
      const std::vector<float> values = to_dtype(flat, DType::F32).to_vector<float>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != 0) kept.push_back(static_cast<std::int64_t>(i));
      }
    }
    Joined out{letters, {}, take(flat, id_tensor(kept, x.device())), kept.size()};
    out.places.resize(kept.size() * letters.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      std::int64_t rest = kept[i];
      for (std::size_t d = letters.size(); d-- > 0;) {
        const std::int64_t size = x.shape()[static_cast<int>(d)];
        out.places[i * letters.size() + d] = rest % size;
        rest /= size;
      }
    }
    return without_repeats(std::move(out));
  }

  // R(x, x): the rows whose places agree, with the letter once.
  Joined without_repeats(Joined x) const {
    const std::string once = letters_in_both(x.letters, x.letters);
    if (once.size() == x.letters.size()) return x;
    Places kept;
    Joined out{once, {}, x.values, 0};
    for (std::size_t i = 0; i < x.count; ++i) {
      const std::int64_t* row = x.row(i);
      bool agrees = true;
      for (std::size_t d = 0; d < x.letters.size(); ++d) {
        agrees &= row[d] == row[x.letters.find(x.letters[d])];
      }
      if (!agrees) continue;
      kept.push_back(static_cast<std::int64_t>(i));
      for (const char letter : once) out.places.push_back(row[x.letters.find(letter)]);
    }
    out.count = kept.size();
    out.values = index_select(x.values, 0, id_tensor(kept, x.values.device()));
    return out;
  }

  // ---- joins

  Joined joined(const Joined& a, const Joined& b) const {
    context_.count_work();
    const std::string common = letters_in_both(a.letters, b.letters);
    const Key key_a(a.letters, common, sizes_);
    const Key key_b(b.letters, common, sizes_);
    std::vector<std::size_t> order(b.count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
      return key_b.of(b.row(x)) < key_b.of(b.row(y));
    });
    std::unordered_map<std::int64_t, std::pair<std::size_t, std::size_t>> ranges;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto [at, is_new] = ranges.try_emplace(key_b.of(b.row(order[i])), i, i);
      at->second.second = i + 1;
    }
    Joined out;
    out.letters = a.letters;
    std::vector<std::size_t> added;
    for (std::size_t d = 0; d < b.letters.size(); ++d) {
      if (has_letter(a.letters, b.letters[d])) continue;
      out.letters += b.letters[d];
      added.push_back(d);
    }
    Places from_a;
    Places from_b;
    for (std::size_t i = 0; i < a.count; ++i) {
      const auto found = ranges.find(key_a.of(a.row(i)));
      if (found == ranges.end()) continue;
      for (std::size_t n = found->second.first; n < found->second.second; ++n) {
        from_a.push_back(static_cast<std::int64_t>(i));
        from_b.push_back(static_cast<std::int64_t>(order[n]));
        out.places.insert(out.places.end(), a.row(i), a.row(i) + a.letters.size());
        for (const std::size_t d : added) out.places.push_back(b.row(order[n])[d]);
      }
      if (from_a.size() > static_cast<std::size_t>(kMostJoined)) throw_too_large("a join");
    }
    out.count = from_a.size();
    const Device device = context_.device;
    out.values = mul(index_select(a.values, 0, id_tensor(from_a, device)),
                     index_select(b.values, 0, id_tensor(from_b, device)));
    return out;
  }

  // Rows that agree in `kept` become one, with the sum of their values.
  Joined only(const Joined& x, const std::string& kept) const {
    const Key key(x.letters, kept, sizes_);
    std::unordered_map<std::int64_t, std::int64_t> seen;
    Places ids;
    Joined out{kept, {}, x.values, 0};
    for (std::size_t i = 0; i < x.count; ++i) {
      const auto [at, is_new] =
          seen.try_emplace(key.of(x.row(i)), static_cast<std::int64_t>(seen.size()));
      ids.push_back(at->second);
      if (!is_new) continue;
      for (const char letter : kept) out.places.push_back(x.row(i)[x.letters.find(letter)]);
    }
    out.count = seen.size();
    if (out.count == x.count) return out;  // ids are 0, 1, 2, ...
    const tl::Tensor none = tl::Tensor::zeros({static_cast<std::int64_t>(out.count)},
                                              x.values.dtype(), x.values.device());
    out.values = index_add(none, 0, id_tensor(ids, x.values.device()), x.values);
    return out;
  }

  // Letters that something else than the joined factors still asks for.
  std::string needed(const Joined& x, const std::vector<bool>& done) const {
    std::string out;
    for (const char letter : x.letters) {
      bool wanted = has_letter(output_, letter);
      for (std::size_t i = 0; i < factors_.size() && !wanted; ++i) {
        wanted = !done[i] && has_letter(factors_[i].letters, letter);
      }
      if (wanted) out += letter;
    }
    return out;
  }

  // The next to be joined: one that shares letters, of few elements. None: factors_.size().
  std::size_t next(const Joined& x, const std::vector<bool>& done,
                   const std::vector<std::optional<Joined>>& rows) const {
    std::size_t best = factors_.size();
    const auto rank = [&](std::size_t i) {
      const bool shares = !letters_in_both(factors_[i].letters, x.letters).empty();
      return std::pair(!shares, rows[i]->count);
    };
    for (std::size_t i = 0; i < factors_.size(); ++i) {
      if (done[i] || !rows[i]) continue;
      if (best == factors_.size() || rank(i) < rank(best)) best = i;
    }
    return best;
  }

  Joined join_all(bool dense_too) const {
    std::vector<bool> done(factors_.size());
    std::vector<std::optional<Joined>> rows(factors_.size());
    for (std::size_t i = 0; i < factors_.size(); ++i) {
      if (const auto* s = std::get_if<SparseTensor>(&factors_[i].value)) {
        rows[i] = rows_of(factors_[i].letters, *s);
      } else if (const auto* d = std::get_if<tl::Tensor>(&factors_[i].value); d && dense_too) {
        rows[i] = rows_of(factors_[i].letters, *d);
      }
    }
    const Device device = context_.device;
    Joined all{"", {}, ones({1}, DType::F32, device), 1};
    for (std::size_t i = next(all, done, rows); i < factors_.size(); i = next(all, done, rows)) {
      all = joined(all, *rows[i]);
      done[i] = true;
      rows[i].reset();
      const std::string kept = needed(all, done);
      all = only(all, kept);
    }
    for (std::size_t i = 0; i < factors_.size(); ++i) {
      const auto* soft = std::get_if<SoftTensor>(&factors_[i].value);
      if (soft == nullptr) continue;
      for (const char letter : factors_[i].letters) {
        if (!has_letter(all.letters, letter)) all = joined(all, everywhere(letter));
      }
      std::vector<tl::Tensor> ids;
      for (const char letter : factors_[i].letters) ids.push_back(column(all, letter));
      all.values = mul(all.values, soft->at(ids));
      done[i] = true;
      const std::string kept = needed(all, done);
      all = only(all, kept);
    }
    return all;
  }

  Joined everywhere(char letter) const {
    Joined out{std::string(1, letter), Places(static_cast<std::size_t>(sizes_.at(letter))), {}, 0};
    std::iota(out.places.begin(), out.places.end(), 0);
    out.count = out.places.size();
    const Device device = context_.device;
    out.values = ones({sizes_.at(letter)}, DType::F32, device);
    return out;
  }

  tl::Tensor column(const Joined& x, char letter) const {
    const std::size_t at = x.letters.find(letter);
    Places ids(x.count);
    for (std::size_t i = 0; i < x.count; ++i) ids[i] = x.row(i)[at];
    return id_tensor(ids, context_.device);
  }

  // ---- the dense factors, and the sum

  // Of all letters, one that no factor has: the number of a row.
  char row_letter() const {
    for (const char letter : std::string("zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA")) {
      if (!sizes_.contains(letter)) return letter;
    }
    throw RuntimeError("a product over large relations has at most 51 indices");
  }

  // The elements of a dense factor for every row, with its other dimensions behind.
  Factor picked(const Factor& factor, const Joined& rows, char row) const {
    const auto& x = std::get<tl::Tensor>(factor.value);
    const std::string once = letters_in_both(factor.letters, factor.letters);
    const std::string bound = letters_in_both(once, rows.letters);
    if (bound.empty()) return factor;
    std::string rest;
    for (const char letter : once) rest += has_letter(bound, letter) ? "" : std::string(1, letter);
    const tl::Tensor turned = einsum(tl::join(factor.letters, "->", bound, rest), {x});
    Shape flat = {-1};
    std::int64_t width = 1;
    for (const char letter : rest) {
      flat.push_back(sizes_.at(letter));
      width *= sizes_.at(letter);
    }
    if (width * static_cast<std::int64_t>(rows.count) > kMostJoined) throw_too_large("a product");
    flat[0] = turned.count() / std::max<std::int64_t>(width, 1);
    const Key key(rows.letters, bound, sizes_);
    Places ids(rows.count);
    for (std::size_t i = 0; i < rows.count; ++i) ids[i] = key.of(rows.row(i));
    return {row + rest, index_select(reshape(turned, flat), 0, id_tensor(ids, x.device()))};
  }

  tl::Tensor finished(const Joined& rows) const {
    const char row = row_letter();
    std::string equation(1, row);
    std::vector<tl::Tensor> operands = {rows.values};
    for (const Factor& f : factors_) {
      if (!is_dense(f.value)) continue;
      const Factor part = picked(f, rows, row);
      equation += "," + part.letters;
      operands.push_back(std::get<tl::Tensor>(part.value));
    }
    operands = in_one_dtype(std::move(operands));
    // Letters of rows come first in what is added up, those of dense factors behind.
    const std::string of_rows = letters_in_both(output_, rows.letters);
    std::string rest;
    for (const char letter : output_) {
      if (!has_letter(of_rows, letter)) rest += letter;
    }
    if (of_rows.empty()) return einsum(tl::join(equation, "->", rest), operands);
    const tl::Tensor terms = einsum(tl::join(equation, "->", row, rest), operands);
    const Key key(rows.letters, of_rows, sizes_);
    Places ids(rows.count);
    for (std::size_t i = 0; i < rows.count; ++i) ids[i] = key.of(rows.row(i));
    Shape flat = {key.count()};
    Shape whole;
    for (const char letter : of_rows) whole.push_back(sizes_.at(letter));
    for (const char letter : rest) {
      flat.push_back(sizes_.at(letter));
      whole.push_back(sizes_.at(letter));
    }
    const tl::Tensor none = tl::Tensor::zeros(flat, terms.dtype(), terms.device());
    const tl::Tensor sums =
        reshape(index_add(none, 0, id_tensor(ids, terms.device()), terms), whole);
    return of_rows + rest == output_ ? sums
                                     : einsum(tl::join(of_rows, rest, "->", output_), {sums});
  }

  Context& context_;
  std::span<const Factor> factors_;
  std::string output_;
  std::map<char, std::int64_t> sizes_;
};

}  // namespace

// ---- soft tensors

std::vector<std::int64_t> SoftTensor::sizes() const {
  std::vector<std::int64_t> out;
  for (const tl::Tensor& table : tables) out.push_back(table.shape()[0]);
  return out;
}

namespace {

// An equation over the weights and a table per dimension, whose rows have the letters given.
std::string soft_equation(const SoftTensor& x, const std::string& rows, const std::string& out) {
  std::string weights;
  std::string inputs;
  for (std::size_t i = 0; i < x.tables.size(); ++i) {
    const char letter = x.weights.rank() == 1 ? 'a' : static_cast<char>('a' + i);
    if (!has_letter(weights, letter)) weights += letter;
    inputs += tl::join(",", rows[i], letter);
  }
  return weights + inputs + "->" + out;
}

std::vector<tl::Tensor> soft_operands(const SoftTensor& x, std::vector<tl::Tensor> rows) {
  rows.insert(rows.begin(), x.weights);
  return in_one_dtype(std::move(rows));
}

}  // namespace

tl::Tensor SoftTensor::at(std::span<const tl::Tensor> ids) const {
  std::vector<tl::Tensor> rows;
  for (std::size_t i = 0; i < tables.size(); ++i)
    rows.push_back(index_select(tables[i], 0, ids[i]));
  const std::string letters(tables.size(), 'z');
  return sigmoid(einsum(soft_equation(*this, letters, "z"), soft_operands(*this, rows)));
}

tl::Tensor SoftTensor::dense() const {
  std::string letters;
  for (std::size_t i = 0; i < tables.size(); ++i) letters += static_cast<char>('A' + i);
  return sigmoid(einsum(soft_equation(*this, letters, letters), soft_operands(*this, tables)));
}

// ---- what is asked for

std::vector<std::int64_t> sizes_of(const AnyTensor& tensor) {
  if (const auto* sparse = std::get_if<SparseTensor>(&tensor)) return sparse->sizes;
  if (const auto* soft = std::get_if<SoftTensor>(&tensor)) return soft->sizes();
  const Shape& shape = std::get<tl::Tensor>(tensor).shape();
  return {shape.begin(), shape.end()};
}

bool is_dense(const AnyTensor& tensor) noexcept {
  return std::holds_alternative<tl::Tensor>(tensor);
}

bool is_large(std::span<const std::int64_t> sizes) noexcept {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (size == 0) return false;
    if (__builtin_mul_overflow(count, size, &count) || count > kMostDense) count = kMostDense + 1;
  }
  return count > kMostDense;
}

tl::Tensor contract(Context& context, std::span<const Factor> factors, const std::string& output) {
  const bool all_dense = std::all_of(factors.begin(), factors.end(),
                                     [](const Factor& f) { return is_dense(f.value); });
  if (!all_dense) return Joiner(context, factors, output).dense();
  std::string equation;
  std::vector<tl::Tensor> operands;
  for (const Factor& f : factors) {
    equation += (operands.empty() ? "" : ",") + f.letters;
    operands.push_back(std::get<tl::Tensor>(f.value));
  }
  return einsum(tl::join(equation, "->", output), in_one_dtype(std::move(operands)));
}

SparseTensor contract_sparse(Context& context, std::span<const Factor> factors,
                             const std::string& output) {
  return Joiner(context, factors, output).sparse();
}

SparseTensor add_sparse(Context& context, const SparseTensor& a, const SparseTensor& b) {
  if (b.count() == 0) return a;
  if (a.count() == 0) return b;
  SparseTensor both = a;
  both.places.insert(both.places.end(), b.places.begin(), b.places.end());
  both.values = cat({a.values, b.values}, 0);
  std::string letters;
  for (std::size_t d = 0; d < a.sizes.size(); ++d) letters += static_cast<char>('a' + d);
  // A sum over one factor: rows that agree become one.
  return contract_sparse(context, std::vector<Factor>{{letters, both}}, letters);
}

tl::Tensor to_dense(Context& context, const SparseTensor& x) {
  std::string letters;
  for (std::size_t d = 0; d < x.sizes.size(); ++d) letters += static_cast<char>('a' + d);
  return contract(context, std::vector<Factor>{{letters, x}}, letters);
}

}  // namespace tl::lang
