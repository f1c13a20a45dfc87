#include "lang/linalg.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

#include "lang/convert.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"

namespace tl::lang {

namespace {

std::int64_t matrix_size(std::string_view op, const tl::Tensor& x) {
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2)) {
    throw Error(ErrorKind::ShapeMismatch, op, "needs a square matrix, got shape ", x.shape());
  }
  return x.dim(-1);
}

tl::Tensor like(const tl::Tensor& x, const std::vector<double>& values, const Shape& shape) {
  const DType dtype = is_float(x.dtype()) ? x.dtype() : DType::F32;
  return to(to_dtype(tl::Tensor::from(values, shape), dtype), x.device());
}

// Brings a (n, n) to the unit matrix and does the same to the rows of b (n, m). Gives the
// determinant; at 0 it stops.
double eliminate(double* a, double* b, std::int64_t n, std::int64_t m) {
  double determinant = 1;
  for (std::int64_t column = 0; column < n; ++column) {
    std::int64_t pivot = column;
    for (std::int64_t row = column + 1; row < n; ++row) {
      if (std::abs(a[row * n + column]) > std::abs(a[pivot * n + column])) pivot = row;
    }
    const double value = a[pivot * n + column];
    if (value == 0 || std::isnan(value)) return value;
    if (pivot != column) {
      std::swap_ranges(a + pivot * n, a + pivot * n + n, a + column * n);
      std::swap_ranges(b + pivot * m, b + pivot * m + m, b + column * m);
      determinant = -determinant;
    }
    determinant *= value;
    for (std::int64_t i = 0; i < n; ++i) a[column * n + i] /= value;
    for (std::int64_t i = 0; i < m; ++i) b[column * m + i] /= value;
    for (std::int64_t row = 0; row < n; ++row) {
      const double factor = a[row * n + column];
      if (row == column || factor == 0) continue;
      for (std::int64_t i = 0; i < n; ++i) a[row * n + i] -= factor * a[column * n + i];
      for (std::int64_t i = 0; i < m; ++i) b[row * m + i] -= factor * b[column * m + i];
    }
  }
  return determinant;
}

// For every matrix of the batch: the right sides become the solutions.
void eliminate_all(std::string_view op, std::vector<double>& a, std::vector<double>& b,
                   std::int64_t n, std::int64_t m) {
  for (std::size_t i = 0; i * static_cast<std::size_t>(n * n) < a.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (eliminate(a.data() + at * n * n, b.data() + at * n * m, n, m) == 0) {
      throw Error(ErrorKind::BadArgument, op, "the matrix is singular");
    }
  }
}

// What was computed here has no history. Each of the three functions adds to its result a term that
// is 0, as x minus its own elements is, and whose derivative is that of the function.
tl::Tensor difference(const tl::Tensor& x) { return sub(x, x.detach()); }

tl::Tensor plain_inverse(const tl::Tensor& x) {
  const std::int64_t n = matrix_size("inv", x);
  std::vector<double> a = list_of_reals(x);
  std::vector<double> unit(a.size(), 0);
  for (std::size_t i = 0; i < unit.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i) % (n * n);
    if (place / n == place % n) unit[i] = 1;
  }
  if (n > 0) eliminate_all("inv", a, unit, n, n);
  return like(x, unit, x.shape());
}

tl::Tensor plain_determinant(const tl::Tensor& x) {
  const std::int64_t n = matrix_size("det", x);
  std::vector<double> a = list_of_reals(x);
  Shape shape = x.shape();
  shape.erase(shape.size() - 1);
  shape.erase(shape.size() - 1);
  std::vector<double> results(static_cast<std::size_t>(element_count("det", shape)), 1);
  for (std::size_t i = 0; n > 0 && i < results.size(); ++i) {
    results[i] = eliminate(a.data() + static_cast<std::int64_t>(i) * n * n, nullptr, n, 0);
  }
  return like(x, results, shape);
}

// The matrix without a row and a column.
std::vector<double> minor_of(const double* a, std::int64_t n, std::int64_t row,
                             std::int64_t column) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (i != row && j != column) out.push_back(a[i * n + j]);
    }
  }
  return out;
}

// The derivative of the determinant by each element. They are there for singular matrices too, and
// are few enough to take each by itself.
tl::Tensor cofactors(const tl::Tensor& x) {
  const std::int64_t n = matrix_size("det", x);
  const std::vector<double> a = list_of_reals(x);
  std::vector<double> out;
  for (std::size_t at = 0; at < a.size(); at += static_cast<std::size_t>(n * n)) {
    for (std::int64_t i = 0; i < n * n; ++i) {
      std::vector<double> rest = minor_of(a.data() + at, n, i / n, i % n);
      const double sign = (i / n + i % n) % 2 == 0 ? 1 : -1;
      out.push_back(sign * eliminate(rest.data(), nullptr, n - 1, 0) + 0.0);  // no -0
    }
  }
  return like(x, out, x.shape());
}

tl::Tensor plain_solve(const tl::Tensor& a, const tl::Tensor& b) {
  const std::int64_t n = matrix_size("solve", a);
  const bool vector = b.rank() == a.rank() - 1;
  const tl::Tensor sides = vector ? b.unsqueeze(-1) : b;
  bool fits = sides.rank() == a.rank();
  for (int d = 0; fits && d < a.rank() - 1; ++d) fits = sides.shape()[d] == a.shape()[d];
  if (!fits) {
    throw Error(ErrorKind::ShapeMismatch, "solve", "a matrix of shape ", a.shape(),
                " and a right side of shape ", b.shape());
  }
  std::vector<double> left = list_of_reals(a);
  std::vector<double> right = list_of_reals(sides);
  if (n > 0) eliminate_all("solve", left, right, n, sides.dim(-1));
  return like(a, right, b.shape());
}

}  // namespace

tl::Tensor inverse(const tl::Tensor& x) {
  tl::Tensor y = plain_inverse(x);
  if (!has_history(x)) return y;
  return sub(y, matmul(y, matmul(difference(x), y)));
}

tl::Tensor determinant(const tl::Tensor& x) {
  tl::Tensor y = plain_determinant(x);
  if (!has_history(x)) return y;
  return add(y, sum(mul(cofactors(x), difference(x)), {-2, -1}));
}

tl::Tensor solve(const tl::Tensor& a, const tl::Tensor& b) {
  tl::Tensor x = plain_solve(a, b);
  if (!has_history(a, b)) return x;
  const bool vector = b.rank() == a.rank() - 1;
  const tl::Tensor columns = vector ? x.unsqueeze(-1) : x;
  const tl::Tensor sides = vector ? b.unsqueeze(-1) : b;
  const tl::Tensor moved = sub(difference(sides), matmul(difference(a), columns));
  const tl::Tensor out = add(columns, matmul(plain_inverse(a), moved));
  return vector ? out.squeeze(-1) : out;
}

// ---- singular values

namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void add_times(std::vector<double>& to, const std::vector<double>& from, double factor) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

using Columns = std::vector<std::vector<double>>;

// Turns pairs of columns until all are at right angles, and the columns of `turns` with them.
void make_orthogonal(Columns& a, Columns& turns) {
  constexpr int kMostSweeps = 60;  // a handful is usual
  constexpr double kSmall = 1e-15;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool turned = false;
    for (std::size_t p = 0; p < a.size(); ++p) {
      for (std::size_t q = p + 1; q < a.size(); ++q) {
        const double pp = dot(a[p], a[p]);
        const double qq = dot(a[q], a[q]);
        const double pq = dot(a[p], a[q]);
        if (!(std::abs(pq) > kSmall * std::sqrt(pp * qq))) continue;
        turned = true;
        const double ratio = (qq - pp) / (2 * pq);
        const double tangent =
            (ratio < 0 ? -1 : 1) / (std::abs(ratio) + std::sqrt(1 + ratio * ratio));
        const double cosine = 1 / std::sqrt(1 + tangent * tangent);
        const double sine = cosine * tangent;
        for (Columns* columns : {&a, &turns}) {
          auto& left = (*columns)[p];
          auto& right = (*columns)[q];
          for (std::size_t i = 0; i < left.size(); ++i) {
            const double x = left[i];
            left[i] = cosine * x - sine * right[i];
            right[i] = sine * x + cosine * right[i];
          }
        }
      }
    }
    if (!turned) return;
  }
}

// A column at right angles to those before it, of length 1.
std::vector<double> another_column(const Columns& before, std::size_t size) {
  for (std::size_t axis = 0; axis < size; ++axis) {
    std::vector<double> column(size, 0);
    column[axis] = 1;
    for (int twice = 0; twice < 2; ++twice) {
      for (const auto& other : before) add_times(column, other, -dot(column, other));
    }
    const double length = std::sqrt(dot(column, column));
    if (length < 0.5 / std::sqrt(static_cast<double>(size))) continue;
    for (double& x : column) x /= length;
    return column;
  }
  return std::vector<double>(size, 0);
}

// For n columns of m >= n elements: a is u times s times transposed v.
struct Decomposed {
  Columns u, v;
  std::vector<double> s;
};
Decomposed decomposed(Columns a) {
  const std::size_t n = a.size();
  const std::size_t m = n == 0 ? 0 : a[0].size();
  Columns v(n, std::vector<double>(n, 0));
  for (std::size_t i = 0; i < n; ++i) v[i][i] = 1;
  make_orthogonal(a, v);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> lengths(n);
  for (std::size_t i = 0; i < n; ++i) lengths[i] = std::sqrt(dot(a[i], a[i]));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return lengths[x] > lengths[y]; });
  Decomposed out;
  for (const std::size_t i : order) {
    out.s.push_back(lengths[i]);
    out.v.push_back(v[i]);
    const bool vanishes = !(lengths[i] > 1e-300) || lengths[i] < 1e-14 * out.s[0];
    if (vanishes) {
      out.u.push_back(another_column(out.u, m));
      continue;
    }
    for (double& x : a[i]) x /= lengths[i];
    out.u.push_back(std::move(a[i]));
  }
  return out;
}

}  // namespace

SingularValues svd(const tl::Tensor& x) {
  if (has_history(x)) {
    throw Error(ErrorKind::Unsupported, "svd",
                "no gradient is known for it; use detach() on what it reads");
  }
  if (x.rank() < 2) {
    throw Error(ErrorKind::ShapeMismatch, "svd", "needs a matrix, got shape ", x.shape());
  }
  const auto m = static_cast<std::size_t>(x.dim(-2));
  const auto n = static_cast<std::size_t>(x.dim(-1));
  const std::size_t k = std::min(m, n);
  const std::vector<double> values = list_of_reals(x);
  if (std::any_of(values.begin(), values.end(), [](double v) { return !std::isfinite(v); })) {
    throw Error(ErrorKind::BadArgument, "svd", "an element is infinite or NaN");
  }
  std::vector<double> u;
  std::vector<double> s;
  std::vector<double> vt;
  const std::size_t batch = m * n == 0 ? 0 : values.size() / (m * n);
  for (std::size_t b = 0; b < batch; ++b) {
    const double* matrix = values.data() + b * m * n;
    const bool wide = m < n;  // then its transpose
    Columns columns(k, std::vector<double>(std::max(m, n)));
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        (wide ? columns[i][j] : columns[j][i]) = matrix[i * n + j];
      }
    }
    const Decomposed parts = decomposed(std::move(columns));
    const Columns& left = wide ? parts.v : parts.u;
    const Columns& right = wide ? parts.u : parts.v;
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t c = 0; c < k; ++c) u.push_back(left[c][i]);
    }
    s.insert(s.end(), parts.s.begin(), parts.s.end());
    for (const auto& row : right) vt.insert(vt.end(), row.begin(), row.end());
  }
  Shape front = x.shape();
  front.erase(front.size() - 1);
  front.erase(front.size() - 1);
  const auto shaped = [&](std::initializer_list<std::size_t> last) {
    Shape shape = front;
    for (const std::size_t size : last) shape.push_back(static_cast<std::int64_t>(size));
    return shape;
  };
  return {like(x, u, shaped({m, k})), like(x, s, shaped({k})), like(x, vt, shaped({k, n}))};
}

}  // namespace tl::lang
