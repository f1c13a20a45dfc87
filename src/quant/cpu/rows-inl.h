// Products of rows with vectors: included after few_rows-inl.h and panel-inl.h, as they are.

// Rows of x from which on unpacking into a panel pays.
constexpr std::int64_t kManyRows = 5;

// Rows that do not fill a vector go to the portable loops.
template <class Format>
void rows_product(const std::byte* w, std::int64_t first, std::int64_t last, const Activations& x,
                  float* y, std::int64_t n, RowOrder order) {
  const std::int64_t step = x.columns() / Format::kElements * Format::kBytes;
  const auto* weights = reinterpret_cast<const Bits8*>(w);
  std::int64_t row = first;
  if (x.rows() >= kManyRows && last - row >= kPanelRows) {
    Panel panel(x.columns(), Integers<Format>::kBlock);
    for (; row + kPanelRows <= last; row += kPanelRows) {
      unpack_panel<Format>(weights + row * step, step, x.columns(), panel);
      panel_product<Format>(panel, x, y + row, n);
    }
  }
  // Rows `row` and seven others, `apart` rows from each other.
  const auto multiply = [&](std::int64_t apart, const Ahead& ahead) {
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      alignas(32) float sums[8];
      _mm256_store_ps(sums, eight_rows<Format>(weights + row * step, apart * step, ahead, x, i));
      for (int r = 0; r < 8; ++r) y[i * n + row + r * apart] = sums[r];
    }
  };
  if (order == RowOrder::Together) {
    for (; row + 8 <= last; row += 8) multiply(1, next_eight<Format>(weights + row * step, step));
  }
  // Each of eight streams has rows one after the other. An odd number of rows apart: a power of two
  // would bring all streams to the same few places of the caches.
  while (row + 8 <= last) {
    const std::int64_t each = ((last - row) / 8 - 1) | 1;
    for (std::int64_t end = row + each; row < end; ++row) {
      multiply(each, along_each<Format>(weights + row * step, each * step));
    }
    row += 7 * each;
  }
  if (row < last) detail::portable_rows<Format>(w, row, last, x, y, n, order);
}

// The instance for a type; null where its products are no integers.
struct RowsOf {
  template <class Format>
  detail::RowsProduct operator()(std::type_identity<Format>) const {
    if constexpr (HasIntegers<Format>) {
      return &rows_product<Format>;
    } else {
      return nullptr;
    }
  }
};
