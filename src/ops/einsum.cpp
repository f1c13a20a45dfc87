// Sums of products named by indices, as permutations, sums and matrix products of pairs.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ops/check.h"
#include "tl/ops/copy.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"

namespace tl {

namespace {

// An index: a letter (by its place in A ... Z a ... z, which is also the alphabetical order), or,
// from kLetters on, a dimension that "..." stands for, counted from the last.
using Tag = int;
constexpr int kLetters = 52;
constexpr int kLabels = kLetters + Dims::kMax;

class Labels : public std::vector<Tag> {
 public:
  using std::vector<Tag>::vector;
  bool has(Tag label) const { return std::find(begin(), end(), label) != end(); }
};

// A tensor and the index of each of its dimensions, none twice.
struct Term {
  Tensor tensor;
  Labels labels;

  std::int64_t size_of(Tag label) const {
    const auto at = std::find(labels.begin(), labels.end(), label);
    return tensor.shape()[static_cast<int>(at - labels.begin())];
  }
};

[[noreturn]] void fail(std::string_view equation, std::string_view what) {
  throw Error(ErrorKind::BadArgument, "einsum", "'", equation, "': ", what);
}

Tag letter(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return 26 + (c - 'a');
  return -1;
}

// One side of a comma, as written: letters, and where "..." stands (-1: nowhere).
struct Written {
  Labels letters;
  int dots = -1;
};

Written parse_term(std::string_view equation, std::string_view text) {
  Written out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.substr(i, 3) == "...") {
      if (out.dots >= 0) fail(equation, "'...' stands twice in one term");
      out.dots = static_cast<int>(out.letters.size());
      i += 2;
      continue;
    }
    const Tag label = letter(text[i]);
    if (label < 0) fail(equation, join("'", text[i], "' is not an index; letters are"));
    out.letters.push_back(label);
  }
  return out;
}

struct Equation {
  std::vector<Written> inputs;
  std::optional<Written> output;
};

Equation parse(std::string_view text) {
  Equation out;
  std::string_view left = text;
  if (const std::size_t arrow = text.find("->"); arrow != std::string_view::npos) {
    out.output = parse_term(text, text.substr(arrow + 2));
    left = text.substr(0, arrow);
  }
  while (true) {
    const std::size_t comma = left.find(',');
    out.inputs.push_back(parse_term(text, left.substr(0, comma)));
    if (comma == std::string_view::npos) return out;
    left.remove_prefix(comma + 1);
  }
}

// Every index with its size; checked against all operands.
class Sizes {
 public:
  void note(std::string_view equation, Tag label, std::int64_t size) {
    std::int64_t& known = size_[static_cast<std::size_t>(label)];
    const bool broadcasts = label >= kLetters;
    if (known < 0 || (broadcasts && known == 1)) {
      known = size;
    } else if (size != known && !(broadcasts && size == 1)) {
      throw Error(
          ErrorKind::ShapeMismatch, "einsum", "'", equation, "': ",
          broadcasts ? std::string("a dimension of '...'") : join("index '", name(label), "'"),
          " has size ", known, " in one operand and ", size, " in another");
    }
  }
  bool knows(Tag label) const { return size_[static_cast<std::size_t>(label)] >= 0; }
  std::int64_t operator[](Tag label) const { return size_[static_cast<std::size_t>(label)]; }

  static char name(Tag label) {
    return static_cast<char>(label < 26 ? 'A' + label : 'a' + (label - 26));
  }

 private:
  std::array<std::int64_t, kLabels> size_ = [] {
    std::array<std::int64_t, kLabels> none{};
    none.fill(-1);
    return none;
  }();
};

// The index of every dimension of an operand, in order, some perhaps twice.
Labels label_dims(std::string_view equation, const Written& term, const Tensor& x) {
  const int named = static_cast<int>(term.letters.size());
  const int hidden = x.rank() - named;
  if (hidden < 0 || (hidden > 0 && term.dots < 0)) {
    throw Error(ErrorKind::ShapeMismatch, "einsum", "'", equation, "': ", named,
                " indices for an operand of shape ", x.shape());
  }
  Labels out;
  for (int i = 0; i <= named; ++i) {
    if (i == term.dots) {
      for (int d = hidden; d > 0; --d) out.push_back(kLetters + d - 1);
    }
    if (i < named) out.push_back(term.letters[static_cast<std::size_t>(i)]);
  }
  return out;
}

// The operand with each index once. An index that stands twice walks both dimensions at a time,
// which is the diagonal; a dimension of size 1 that broadcasts is left out.
Term distinct(const Tensor& x, const Labels& dims, const Sizes& sizes) {
  Term out;
  Shape shape;
  Dims strides;
  for (int d = 0; d < x.rank(); ++d) {
    const Tag label = dims[static_cast<std::size_t>(d)];
    if (label >= kLetters && x.shape()[d] != sizes[label]) continue;
    const auto seen = std::find(out.labels.begin(), out.labels.end(), label);
    if (seen != out.labels.end()) {
      strides[static_cast<int>(seen - out.labels.begin())] += x.strides()[d];
      continue;
    }
    out.labels.push_back(label);
    shape.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
  }
  out.tensor = x.with_layout({shape, strides, x.layout().offset()});
  return out;
}

Tensor in_order(const Term& term, const Labels& order) {
  Dims dims;
  for (const Tag label : order) {
    const auto at = std::find(term.labels.begin(), term.labels.end(), label);
    dims.push_back(at - term.labels.begin());
  }
  return term.tensor.permute(dims);
}

// Sums over the indices that `keep` does not have.
Term sum_out(const Term& term, const Labels& keep) {
  Labels kept;
  Dims summed;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (keep.has(term.labels[i])) {
      kept.push_back(term.labels[i]);
    } else {
      summed.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (summed.empty()) return term;
  return {sum(term.tensor, summed), kept};
}

// The product of two terms over the indices they share, summed over those that `keep` lacks.
Term contract(std::string_view equation, const Term& a, const Term& b, const Labels& keep,
              const Sizes& sizes) {
  Labels batch, summed, rows, columns;
  for (const Tag label : a.labels) {
    if (!b.labels.has(label)) {
      rows.push_back(label);
    } else {
      (keep.has(label) ? batch : summed).push_back(label);
    }
  }
  for (const Tag label : b.labels) {
    if (!a.labels.has(label)) columns.push_back(label);
  }
  if (batch.size() + 2 > static_cast<std::size_t>(Dims::kMax) ||
      batch.size() + rows.size() + columns.size() > static_cast<std::size_t>(Dims::kMax)) {
    fail(equation, "a product of two operands has more than 8 dimensions");
  }
  const auto count = [&](const Labels& labels) {
    std::int64_t product = 1;
    for (const Tag label : labels) product *= sizes[label];
    return product;
  };
  const auto side = [&](const Term& term, const Labels& first, const Labels& second) {
    Labels order = batch;
    order.insert(order.end(), first.begin(), first.end());
    order.insert(order.end(), second.begin(), second.end());
    Shape shape;
    for (const Tag label : batch) shape.push_back(sizes[label]);
    shape.push_back(count(first));
    shape.push_back(count(second));
    return reshape(in_order(term, order), shape);
  };
  Term out;
  out.labels = batch;
  out.labels.insert(out.labels.end(), rows.begin(), rows.end());
  out.labels.insert(out.labels.end(), columns.begin(), columns.end());
  Shape shape;
  for (const Tag label : out.labels) shape.push_back(sizes[label]);
  out.tensor = reshape(matmul(side(a, rows, summed), side(b, summed, columns)), shape);
  return out;
}

// The indices that have to survive a product of terms i and j: those of the output and of the
// other terms.
Labels needed(const std::vector<Term>& terms, const Labels& output, std::size_t i, std::size_t j) {
  Labels keep = output;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    if (t == i || t == j) continue;
    keep.insert(keep.end(), terms[t].labels.begin(), terms[t].labels.end());
  }
  return keep;
}

// The pair whose product is smallest compared with what it replaces.
std::pair<std::size_t, std::size_t> best_pair(const std::vector<Term>& terms, const Labels& output,
                                              const Sizes& sizes) {
  std::pair<std::size_t, std::size_t> best{0, 1};
  double least = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    for (std::size_t j = i + 1; j < terms.size(); ++j) {
      const Labels keep = needed(terms, output, i, j);
      double size = 1;
      for (const Tag label : terms[i].labels) {
        if (keep.has(label)) size *= static_cast<double>(sizes[label]);
      }
      for (const Tag label : terms[j].labels) {
        if (keep.has(label) && !terms[i].labels.has(label)) {
          size *= static_cast<double>(sizes[label]);
        }
      }
      const double cost = size - static_cast<double>(terms[i].tensor.count()) -
                          static_cast<double>(terms[j].tensor.count());
      if ((i == 0 && j == 1) || cost < least) {
        least = cost;
        best = {i, j};
      }
    }
  }
  return best;
}

Labels output_labels(std::string_view equation, const Equation& parsed, const Sizes& sizes) {
  Labels out;
  const auto add_hidden = [&] {
    for (Tag label = kLabels - 1; label >= kLetters; --label) {
      if (sizes.knows(label)) out.push_back(label);
    }
  };
  if (!parsed.output) {
    add_hidden();
    std::array<int, kLetters> times{};
    for (const Written& term : parsed.inputs) {
      for (const Tag label : term.letters) ++times[static_cast<std::size_t>(label)];
    }
    for (Tag label = 0; label < kLetters; ++label) {
      if (times[static_cast<std::size_t>(label)] == 1) out.push_back(label);
    }
    return out;
  }
  const Written& term = *parsed.output;
  for (int i = 0; i <= static_cast<int>(term.letters.size()); ++i) {
    if (i == term.dots) add_hidden();
    if (i == static_cast<int>(term.letters.size())) break;
    const Tag label = term.letters[static_cast<std::size_t>(i)];
    if (!sizes.knows(label)) {
      fail(equation, join("no operand has the output's index '", Sizes::name(label), "'"));
    }
    if (out.has(label)) {
      fail(equation, join("the output names index '", Sizes::name(label), "' twice"));
    }
    out.push_back(label);
  }
  return out;
}

}  // namespace

Tensor einsum(std::string_view equation, std::span<const Tensor> tensors) {
  const Equation parsed = parse(equation);
  if (parsed.inputs.size() != tensors.size()) {
    fail(equation, join(parsed.inputs.size(), " terms for ", tensors.size(), " operands"));
  }
  Sizes sizes;
  std::vector<Labels> dims;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    dims.push_back(label_dims(equation, parsed.inputs[i], tensors[i]));
    for (std::size_t d = 0; d < dims[i].size(); ++d) {
      sizes.note(equation, dims[i][d], tensors[i].shape()[static_cast<int>(d)]);
    }
  }
  const Labels output = output_labels(equation, parsed, sizes);
  if (output.size() > static_cast<std::size_t>(Dims::kMax)) {
    fail(equation, "the result has more than 8 dimensions");
  }
  for (const Tensor& x : tensors) ops::expect_same_device("einsum", tensors[0], x);
  for (const Tensor& x : tensors) ops::expect_same_dtype("einsum", tensors[0], x);
  if (tensors[0].dtype() == DType::Bool) {
    throw Error(ErrorKind::Unsupported, "einsum", "needs tensors of numbers, got ",
                tensors[0].dtype());
  }

  std::vector<Term> terms;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    terms.push_back(distinct(tensors[i], dims[i], sizes));
  }
  // An index of one operand alone that the output lacks is summed over first.
  for (std::size_t i = 0; i < terms.size(); ++i) {
    terms[i] = sum_out(terms[i], needed(terms, output, i, i));
  }
  while (terms.size() > 1) {
    const auto [i, j] = best_pair(terms, output, sizes);
    const Labels keep = needed(terms, output, i, j);
    Term product = contract(equation, terms[i], terms[j], keep, sizes);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
    terms[i] = std::move(product);
  }
  // Every index of the output is there: a dimension that all operands broadcast has size 1.
  const Term& last = terms[0];
  Labels order;
  for (const Tag label : output) {
    if (last.labels.has(label)) order.push_back(label);
  }
  Tensor result = in_order(last, order);
  for (std::size_t d = 0; d < output.size(); ++d) {
    if (!last.labels.has(output[d])) result = result.unsqueeze(static_cast<std::int64_t>(d));
  }
  return contiguous(result);
}

}  // namespace tl
