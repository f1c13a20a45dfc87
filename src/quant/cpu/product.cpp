#include "quant/cpu/product.h"

#include <algorithm>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ops/cpu/gemm.h"
#include "quant/cpu/activation_tiles.h"
#include "quant/cpu/dequantize.h"
#include "quant/cpu/unpack.h"
#include "quant/formats.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

namespace {

// Rows of x from which on a matrix unit is quicker than vectors, and from which on its bf16 is
// quicker than its integers: at 2048 x 2048 on two cores of a Xeon with AMX
// (docs/measurements/0004).
constexpr std::int64_t kTiledRows = 32, kManyRows = 96;
// Rows up to which a product with f16 or bf16 does no more than read the weight.
constexpr std::int64_t kFewHalves = 4;

DType half_of(QType type) { return type == QType::F16 ? DType::F16 : DType::BF16; }

// f32 of x (m, k) times rows of w.
Gemm gemm_of_rows(const std::byte* w, std::int64_t n, std::int64_t k, const float* x,
                  std::int64_t m, float* y) {
  Gemm g{};
  g.dtype = DType::F32;
  g.m = m;
  g.n = n;
  g.k = k;
  g.a = x;
  g.a_row = k;
  g.a_col = 1;
  g.b = w;
  g.b_row = 1;
  g.b_col = k;
  g.c = y;
  g.c_row = n;
  g.c_col = 1;
  return g;
}

int dot(const qb::Bits8* code, const std::int8_t* x, int count) {
  int sum = 0;
  for (int j = 0; j < count; ++j) sum += code[j] * x[j];
  return sum;
}

// One block of w times block `b` of row `i` of x, added to `y`.
template <class Format>
float add_block(float y, const UnpackedBlock& w, const Activations& x, std::int64_t i,
                std::int64_t b) {
  using Type = Integers<Format>;
  const std::int8_t* bytes = x.bytes(i) + b * Type::kBlock;
  const float dx = x.scales(i)[b];
  if constexpr (Type::kBlock == 32) {
    const std::int32_t sum = x.sums(i)[b];
    const int whole = dot(w.code, bytes, 32) - Type::kOffset * sum;
    y += qb::mul(qb::mul(w.d, dx), static_cast<float>(whole));
    if constexpr (Type::kMinimum) y += qb::mul(qb::mul(w.m, dx), static_cast<float>(sum));
  } else {
    const std::int32_t* sums = x.sums(i) + 16 * b;
    int whole = 0, below = 0;
    for (int p = 0; p < 16; ++p) {
      whole += w.scale[p] * (dot(w.code + 16 * p, bytes + 16 * p, 16) - Type::kOffset * sums[p]);
      if constexpr (Type::kMinimum) below += w.minimum[p] * sums[p];
    }
    y += qb::mul(qb::mul(w.d, dx), static_cast<float>(whole));
    if constexpr (Type::kMinimum) y -= qb::mul(qb::mul(w.m, dx), static_cast<float>(below));
  }
  return y;
}

// For formats without integers: a piece of a row decoded, times the same piece of every row of x.
// Sums run in 16 lanes that are added up in pairs, whatever m is.
void decoded_product(QType type, const std::byte* w, std::int64_t n, std::int64_t k, const float* x,
                     std::int64_t m, float* y) {
  constexpr std::int64_t kPiece = 1024;
  constexpr int kLanes = 16;
  const QFormat& format = format_of(type);
  const std::int64_t row_bytes = k / format.elements * format.bytes;
  const std::int64_t grain =
      std::max<std::int64_t>(1, (1 << 16) / std::max<std::int64_t>(k * m, 1));
  ThreadPool::shared().parallel_for(0, n, grain, [&](std::int64_t first, std::int64_t last) {
    const Aligned<float> values = aligned<float>(kPiece);
    const auto lanes = aligned<float>(static_cast<std::size_t>(m) * kLanes);
    for (std::int64_t row = first; row < last; ++row) {
      std::fill_n(lanes.get(), m * kLanes, 0.0f);
      for (std::int64_t at = 0; at < k; at += kPiece) {
        const std::int64_t count = std::min(kPiece, k - at);
        decode_blocks(type, w + row * row_bytes + at / format.elements * format.bytes, count,
                      values.get());
        for (std::int64_t i = 0; i < m; ++i) {
          const float* from = x + i * k + at;
          float* sum = lanes.get() + i * kLanes;
          for (std::int64_t j = 0; j < count; j += kLanes) {
            for (int l = 0; l < kLanes; ++l)
              sum[l] += qb::mul(values[static_cast<std::size_t>(j + l)], from[j + l]);
          }
        }
      }
      for (std::int64_t i = 0; i < m; ++i) {
        float* sum = lanes.get() + i * kLanes;
        for (int width = kLanes / 2; width > 0; width /= 2) {
          for (int l = 0; l < width; ++l) sum[l] += sum[l + width];
        }
        y[i * n + row] = sum[0];
      }
    }
  });
}

// Rows of f16 or bf16, which are read once and never made f32 as a whole.
void half_product(const Factor& each, std::int64_t k, const float* x, std::int64_t m) {
  const Gemm g = gemm_of_rows(each.w, each.n, k, x, m, each.y);
  const DType dtype = half_of(each.type);
  if (!gemm_amx(g, dtype)) gemm_float(g, dtype);
}

// Rows of a weight of which threads take some each.
struct SharedRows {
  std::int64_t n;
  std::function<void(std::int64_t first, std::int64_t last)> multiply;
};

void share_rows(std::span<const SharedRows> weights, std::int64_t k, std::int64_t m) {
  if (weights.empty()) return;
  constexpr std::int64_t kTogether = 16;  // rows that go together in the widest path
  const auto units_of = [](const SharedRows& each) { return (each.n + kTogether - 1) / kTogether; };
  std::int64_t units = 0;
  for (const SharedRows& each : weights) units += units_of(each);
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 16) / (k * m * kTogether));
  ThreadPool::shared().parallel_for(0, units, grain, [&](std::int64_t first, std::int64_t last) {
    for (const SharedRows& each : weights) {
      const std::int64_t end = std::min(last, units_of(each));
      if (first < end) each.multiply(first * kTogether, std::min(end * kTogether, each.n));
      first = std::max<std::int64_t>(0, first - units_of(each));
      last -= units_of(each);
    }
  });
}

// What the products of one x with several weights share.
class Shared {
 public:
  Shared(std::int64_t k, const float* x, std::int64_t m, ProductPath path, RowOrder order)
      : k_(k), x_(x), m_(m), path_(path), order_(order) {}

  // Takes a weight whose products are integers.
  void add(const Factor& each) {
    const detail::RowsProduct rows = rows_of(each.type);
    const Activations& bytes = bytes_in(format_of(each.type).elements);
    const bool has_tiles = path_ == ProductPath::AmxInt8 || path_ == ProductPath::Amx;
    if (!has_tiles || m_ < kTiledRows || each.n < kTileRows) {
      weights_.push_back(
          {each.n, [this, &bytes, rows, each](std::int64_t first, std::int64_t last) {
             rows(each.w, first, last, bytes, each.y, each.n, order_);
           }});
      return;
    }
    const detail::TiledProduct tiled = detail::amx_product(each.type);
    const ActivationTiles& tiles = tiles_.emplace_back(bytes, tiled.block, tiled.part);
    const std::int64_t whole = each.n / kTileRows * kTileRows;
    weights_.push_back(
        {each.n,
         [this, &bytes, &tiles, rows, tiled, whole, each](std::int64_t first, std::int64_t last) {
           if (first < whole)
             tiled.rows(each.w, first, std::min(last, whole), tiles, each.y, each.n);
           if (last > whole) {
             rows(each.w, std::max(first, whole), last, bytes, each.y, each.n, order_);
           }
         }});
  }

  // A weight of f16 or bf16, and few rows of x.
  void add_half(const Factor& each) {
    weights_.push_back({each.n, [this, each](std::int64_t first, std::int64_t last) {
                          Gemm g = gemm_of_rows(each.w + 2 * first * k_, each.n, k_, x_, m_,
                                                each.y + first);
                          g.n = last - first;
                          g.order = order_;
                          gemm_float(g, half_of(each.type));
                        }});
  }

  void multiply() const { share_rows(weights_, k_, m_); }

 private:
  static constexpr std::int64_t kTileRows = 16;

  detail::RowsProduct rows_of(QType type) const {
    if (path_ >= ProductPath::Avx512Vnni) return detail::vnni_product(type);
    return path_ == ProductPath::Avx2 ? detail::avx2_product(type) : detail::portable_product(type);
  }
  const Activations& bytes_in(int block) {
    std::optional<Activations>& bytes = block == 32 ? of_32_ : of_256_;
    if (!bytes) {
      const Activations::EncodeBlocks encode = path_ >= ProductPath::Avx512Vnni
                                                   ? detail::vnni_encode()
                                               : path_ == ProductPath::Avx2 ? detail::avx2_encode()
                                                                            : nullptr;
      bytes.emplace(x_, m_, k_, block, encode);
    }
    return *bytes;
  }

  std::int64_t k_;
  const float* x_;
  std::int64_t m_;
  ProductPath path_;
  RowOrder order_;
  std::optional<Activations> of_32_, of_256_;
  std::list<ActivationTiles> tiles_;
  std::vector<SharedRows> weights_;
};

}  // namespace

template <class Format>
void detail::portable_rows(const std::byte* w, std::int64_t first, std::int64_t last,
                           const Activations& x, float* y, std::int64_t n, RowOrder) {
  constexpr int kSums = Integers<Format>::kBlock == 32 ? kChains : 1;
  const std::int64_t blocks = x.columns() / Format::kElements;
  const auto* weights = reinterpret_cast<const qb::Bits8*>(w);
  const auto sums = aligned<float>(static_cast<std::size_t>(x.rows()) * kSums);
  UnpackedBlock block = {};
  for (std::int64_t row = first; row < last; ++row) {
    const qb::Bits8* at = weights + row * blocks * Format::kBytes;
    std::fill_n(sums.get(), x.rows() * kSums, 0.0f);
    for (std::int64_t b = 0; b < blocks; ++b, at += Format::kBytes) {
      Integers<Format>::unpack(at, block);
      for (std::int64_t i = 0; i < x.rows(); ++i) {
        float& sum = sums[static_cast<std::size_t>(i * kSums + b % kSums)];
        sum = add_block<Format>(sum, block, x, i, b);
      }
    }
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      const float* chain = sums.get() + i * kSums;
      float sum = chain[0];
      for (int c = 1; c < kSums; ++c) sum += chain[c];
      y[i * n + row] = sum;
    }
  }
}

detail::RowsProduct detail::portable_product(QType type) {
  return with_blocks(type, []<class Format>(std::type_identity<Format>) -> RowsProduct {
    if constexpr (HasIntegers<Format>) {
      return &portable_rows<Format>;
    } else {
      return nullptr;
    }
  });
}

bool has_product_path(ProductPath path) {
  switch (path) {
    case ProductPath::Amx:
      return detail::has_tiles();
    case ProductPath::AmxInt8:
      return detail::has_amx();
    case ProductPath::Avx512Vnni:
      return detail::has_vnni();
    case ProductPath::Avx2:
      return detail::has_avx2();
    case ProductPath::Portable:
      break;
  }
  return true;
}

ProductPath product_path(std::string_view name) {
  struct Named {
    std::string_view name;
    ProductPath path;
  };
  static constexpr Named kPaths[] = {{"amx", ProductPath::Amx},
                                     {"amx-int8", ProductPath::AmxInt8},
                                     {"avx512", ProductPath::Avx512Vnni},
                                     {"avx2", ProductPath::Avx2},
                                     {"portable", ProductPath::Portable}};
  std::string names;
  for (const Named& each : kPaths) {
    if (!has_product_path(each.path)) continue;
    if (name.empty() || each.name == name) return each.path;
    names.append(names.empty() ? "" : ", ").append(each.name);
  }
  throw Error(ErrorKind::BadArgument, "TL_CPU_PRODUCTS", "'", name,
              "' is no way of this machine: it has ", names);
}

ProductPath best_product_path() {
  static const ProductPath best = product_path(environment("TL_CPU_PRODUCTS"));
  return best;
}

void products(std::span<const Factor> factors, std::int64_t k, const float* x, std::int64_t m,
              ProductPath path, RowOrder order) {
  if (m == 0) return;
  Shared shared(k, x, m, path, order);
  for (const Factor& each : factors) {
    if (each.n == 0) continue;
    const bool is_half = each.type == QType::F16 || each.type == QType::BF16;
    if (is_half && k > 0 && m <= kFewHalves) {
      shared.add_half(each);
    } else if (is_half && k > 0) {
      half_product(each, k, x, m);
    } else if (k == 0 || detail::portable_product(each.type) == nullptr) {
      decoded_product(each.type, each.w, each.n, k, x, m, each.y);
    } else if (!has_product_path(path)) {
      throw Error(ErrorKind::Unsupported, "product", "this machine has no such path");
    } else if (path == ProductPath::Amx && m >= kManyRows) {
      Gemm g = gemm_of_rows(each.w, each.n, k, x, m, each.y);
      g.b_col = k / format_of(each.type).elements * format_of(each.type).bytes;
      detail::tiles_product(each.type)(g);
    } else {
      shared.add(each);
    }
  }
  shared.multiply();
}

}  // namespace tl::cpu
