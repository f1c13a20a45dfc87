#include "tl/tensor/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <mutex>
#include <ostream>
#include <string_view>
#include <vector>

namespace tl {

// ---- options

PrintOptions PrintOptions::brief() {
  PrintOptions options;
  options.precision = 2;
  options.edge_items = 2;
  return options;
}

PrintOptions PrintOptions::full() {
  PrintOptions options;
  options.threshold = std::numeric_limits<std::int64_t>::max();
  return options;
}

namespace {

constexpr int kMostDigits = 100;

void check(const PrintOptions& o) {
  const auto refuse = [](std::string_view what, std::int64_t value) {
    throw Error(ErrorKind::BadArgument, "print options", what, " cannot be ", value);
  };
  if (o.precision < 0 || o.precision > kMostDigits) refuse("precision", o.precision);
  if (o.threshold < 0) refuse("threshold", o.threshold);
  if (o.edge_items < 0) refuse("edge items", o.edge_items);
  if (o.line_width < 1) refuse("line width", o.line_width);
}

class SharedOptions {
 public:
  PrintOptions get() {
    const std::lock_guard lock(mutex_);
    return options_;
  }
  template <class F>
  void change(F&& f) {
    const std::lock_guard lock(mutex_);
    PrintOptions changed = options_;
    f(changed);
    check(changed);
    options_ = changed;
  }

 private:
  std::mutex mutex_;
  PrintOptions options_;
};

SharedOptions& shared_options() {
  static SharedOptions instance;
  return instance;
}

}  // namespace

PrintOptions print_options() { return shared_options().get(); }

void set_print_options(const PrintOptions& options) {
  shared_options().change([&](PrintOptions& o) { o = options; });
}
void set_print_precision(int precision) {
  shared_options().change([&](PrintOptions& o) { o.precision = precision; });
}
void set_print_threshold(std::int64_t threshold) {
  shared_options().change([&](PrintOptions& o) { o.threshold = threshold; });
}
void set_print_edge_items(int edge_items) {
  shared_options().change([&](PrintOptions& o) { o.edge_items = edge_items; });
}
void set_print_line_width(int line_width) {
  shared_options().change([&](PrintOptions& o) { o.line_width = line_width; });
}
void set_print_scientific(Scientific scientific) {
  shared_options().change([&](PrintOptions& o) { o.scientific = scientific; });
}

// ---- reading what is shown

namespace {

// What is shown of a tensor: every dimension whole, or its two ends.
struct Shown {
  Shape shape;                         // of the elements shown
  std::vector<bool> cut;               // per dimension: are its middle elements left out?
  std::vector<double> reals;           // floats, row-major
  std::vector<std::int64_t> integers;  // the others
};

template <class T>
void place(const Tensor& part, const Dims& at, const Shape& whole, std::vector<T>& out) {
  visit_dtype("print", part.dtype(), [&]<class E>() {
    // A byte that is neither 0 nor 1 is no bool to C++.
    using Read = std::conditional_t<std::is_same_v<E, bool>, std::uint8_t, E>;
    std::vector<Read> values(static_cast<std::size_t>(part.count()));
    part.read_bytes(std::as_writable_bytes(std::span(values)));
    Dims i = Dims::repeated(part.rank(), 0);
    const Dims strides = contiguous_strides(whole);
    for (const Read value : values) {
      std::int64_t to = 0;
      for (int d = 0; d < i.size(); ++d) to += (at[d] + i[d]) * strides[d];
      out[static_cast<std::size_t>(to)] = convert<T>(value);
      for (int d = i.size() - 1; d >= 0; --d) {
        if (++i[d] < part.shape()[d]) break;
        i[d] = 0;
      }
    }
  });
}

// Reads the corners of dimensions `dim` and later, each as a view of its own.
template <class T>
void read_corners(const Tensor& x, const Shown& shown, int dim, Dims at, std::vector<T>& out) {
  if (dim == x.rank()) return place(x, at, shown.shape, out);
  if (!shown.cut[static_cast<std::size_t>(dim)]) {
    return read_corners(x, shown, dim + 1, at, out);
  }
  const std::int64_t edge = shown.shape[dim] / 2;
  read_corners(x.narrow(dim, 0, edge), shown, dim + 1, at, out);
  at[dim] = edge;
  read_corners(x.narrow(dim, x.shape()[dim] - edge, edge), shown, dim + 1, at, out);
}

Shown read_shown(const Tensor& x, const PrintOptions& options) {
  Shown shown;
  shown.shape = x.shape();
  const std::int64_t both_edges = 2 * std::int64_t{options.edge_items};
  for (int d = 0; d < x.rank(); ++d) {
    const bool cut = x.count() > options.threshold && x.shape()[d] > both_edges;
    shown.cut.push_back(cut);
    if (cut) shown.shape[d] = both_edges;
  }
  const auto count = static_cast<std::size_t>(element_count("print", shown.shape));
  const Dims start = Dims::repeated(x.rank(), 0);
  if (is_float(x.dtype())) {
    shown.reals.resize(count);
    if (count > 0) read_corners(x, shown, 0, start, shown.reals);
  } else {
    shown.integers.resize(count);
    if (count > 0) read_corners(x, shown, 0, start, shown.integers);
  }
  return shown;
}

// ---- elements as text

// Not printf: the point must be a point in every locale.
template <class T, class... Style>
std::string number(T value, Style... style) {
  char text[512];  // 309 digits, a sign, a point and the precision
  return {text, std::to_chars(std::begin(text), std::end(text), value, style...).ptr};
}

std::string not_finite(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::string integer(std::int64_t value, DType dtype) {
  if (dtype != DType::Bool) return std::to_string(value);
  return value != 0 ? "true" : "false";
}

std::vector<std::string> format_reals(const std::vector<double>& values, const PrintOptions& o) {
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  bool whole = true;  // are all of them integers?
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    whole = whole && std::trunc(value) == value;
    if (value == 0) continue;
    smallest = std::min(smallest, std::abs(value));
    largest = std::max(largest, std::abs(value));
  }
  const bool wide = largest > 0 && (largest / smallest > 1000 || largest > 1e8 || smallest < 1e-4);
  const bool scientific =
      o.scientific == Scientific::Always || (o.scientific == Scientific::Auto && wide);
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const double value : values) {
    if (!std::isfinite(value)) {
      texts.push_back(not_finite(value));
    } else if (scientific) {
      texts.push_back(number(value, std::chars_format::scientific, o.precision));
    } else if (whole) {
      texts.push_back(number(value, std::chars_format::fixed, 0) + ".");
    } else {
      texts.push_back(number(value, std::chars_format::fixed, o.precision));
    }
  }
  return texts;
}

std::vector<std::string> format_elements(const Shown& shown, DType dtype, const PrintOptions& o) {
  std::vector<std::string> texts;
  if (is_float(dtype)) {
    texts = format_reals(shown.reals, o);
  } else {
    texts.reserve(shown.integers.size());
    for (const std::int64_t value : shown.integers) {
      texts.push_back(integer(value, dtype));
    }
  }
  std::size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, text.size());
  for (std::string& text : texts) text.insert(0, width - text.size(), ' ');
  return texts;
}

// ---- brackets and lines

class Layouter {
 public:
  Layouter(const Shown& shown, const std::vector<std::string>& texts, int line_width)
      : shown_(shown), texts_(texts), line_width_(static_cast<std::size_t>(line_width)) {}

  std::string text() {
    if (shown_.shape.empty()) return texts_[0];
    if (texts_.empty() &&
        std::none_of(shown_.cut.begin(), shown_.cut.end(), [](bool cut) { return cut; })) {
      return "[]";
    }
    block(0);
    return std::move(out_);
  }

 private:
  int rank() const { return shown_.shape.size(); }

  // The brackets of dimension `dim` and all in them.
  void block(int dim) {
    out_ += '[';
    if (dim == rank() - 1) {
      row();
    } else {
      const std::int64_t size = shown_.shape[dim];
      const bool cut = shown_.cut[static_cast<std::size_t>(dim)];
      const std::int64_t before = cut ? size / 2 : size;
      for (std::int64_t i = 0; i < before; ++i) {
        if (i > 0) next(dim);
        block(dim + 1);
      }
      if (cut) {
        if (before > 0) next(dim);
        out_ += "...";
        for (std::int64_t i = before; i < size; ++i) {
          next(dim);
          block(dim + 1);
        }
      }
    }
    out_ += ']';
  }

  // To the next block of dimension `dim`: blocks of more dimensions stand further apart.
  void next(int dim) {
    const int lines = rank() - 1 - dim, indent = dim + 1;
    out_ += ',';
    out_.append(static_cast<std::size_t>(lines), '\n');
    out_.append(static_cast<std::size_t>(indent), ' ');
  }

  void row() {
    const std::int64_t size = shown_.shape[rank() - 1];
    const bool cut = shown_.cut.back();
    const std::int64_t before = cut ? size / 2 : size;
    column_ = static_cast<std::size_t>(rank());
    first_in_row_ = true;
    for (std::int64_t i = 0; i < before; ++i) item(texts_[taken_++]);
    if (cut) {
      item("...");
      for (std::int64_t i = before; i < size; ++i) item(texts_[taken_++]);
    }
  }

  // An element of the innermost dimension, on a new line when it and the brackets that may follow
  // would pass the line's end.
  void item(std::string_view text) {
    const auto indent = static_cast<std::size_t>(rank());
    if (!first_in_row_) {
      out_ += ',';
      if (column_ + 2 + text.size() + indent > line_width_) {
        out_ += '\n';
        out_.append(indent, ' ');
        column_ = indent;
      } else {
        out_ += ' ';
        column_ += 2;
      }
    }
    first_in_row_ = false;
    out_ += text;
    column_ += text.size();
  }

  const Shown& shown_;
  const std::vector<std::string>& texts_;
  std::size_t line_width_;
  std::string out_;
  std::size_t taken_ = 0;   // elements written
  std::size_t column_ = 0;  // of the line being written
  bool first_in_row_ = true;
};

std::string sizes(const Shape& shape) {
  std::string out;
  for (int d = 0; d < shape.size(); ++d) {
    if (d > 0) out += ", ";
    out += std::to_string(shape[d]);
  }
  return out;
}

std::string device_suffix(const Tensor& x) {
  return x.location().is_cpu() ? "" : ", " + x.location().text();
}

}  // namespace

std::string to_text(const Tensor& tensor, const PrintOptions& options) {
  check(options);
  const Shown shown = read_shown(tensor, options);
  const std::vector<std::string> texts = format_elements(shown, tensor.dtype(), options);
  return join(Layouter(shown, texts, options.line_width).text(), "\nTensor[[",
              sizes(tensor.shape()), "], ", tensor.dtype(), device_suffix(tensor), "]");
}

std::string to_text(const Tensor& tensor) { return to_text(tensor, print_options()); }

std::string to_debug_text(const Tensor& tensor) {
  constexpr std::int64_t kMost = 9;  // elements that are shown
  std::string inside;
  if (tensor.rank() == 0 || (tensor.rank() == 1 && tensor.count() <= kMost)) {
    const Shown shown = read_shown(tensor, PrintOptions::full());
    const auto add = [&](const std::string& text) {
      if (!inside.empty()) inside += ", ";
      inside += text;
    };
    for (const double value : shown.reals) {
      // The fewest digits that name the element; an f32 is not shown with the digits of an f64.
      const bool wide = tensor.dtype() == DType::F64;
      add(!std::isfinite(value) ? not_finite(value)
          : wide                ? number(value)
                                : number(static_cast<float>(value)));
    }
    for (const std::int64_t value : shown.integers) {
      add(integer(value, tensor.dtype()));
    }
  } else {
    inside = "dims " + sizes(tensor.shape());
  }
  return join("Tensor[", inside, "; ", tensor.dtype(), device_suffix(tensor), "]");
}

std::string Tensor::text() const { return to_text(*this); }
std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_text(tensor); }

}  // namespace tl
