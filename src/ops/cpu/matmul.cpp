#include "ops/cpu/matmul.h"

namespace tl::cpu {
void matmul(const ops::Product& product, Tensor& out) {
  const Stream stream = out.device().stream();
  const std::int64_t items = product.items();
  visit_dtype("matmul", out.dtype(), [&]<class T> {
    using Sum = std::conditional_t<std::is_same_v<T, double>, double,
                                   std::conditional_t<std::is_integral_v<T>, std::uint64_t, float>>;
    const T* a = product.a.read<T>(stream);
    const T* b = product.b.read<T>(stream);
    const T* bias = product.bias ? product.bias->read<T>(stream) : nullptr;
    T* c = out.write<T>(stream);
    Dims at = Dims::repeated(product.batch.size(), 0);
    for (std::int64_t i = 0; i < items; ++i) {
      std::int64_t ao = 0, bo = 0;
      for (int d = 0; d < at.size(); ++d) {
        ao += at[d] * product.a.strides()[d];
        bo += at[d] * product.b.strides()[d];
      }
      for (std::int64_t r = 0; r < product.m; ++r)
        for (std::int64_t j = 0; j < product.n; ++j) {
          Sum s = 0;
          for (std::int64_t k = 0; k < product.k; ++k)
            s += static_cast<Sum>(a[ao + r * product.a_row() + k * product.a_col()]) *
                 static_cast<Sum>(b[bo + k * product.b_row() + j * product.b_col()]);
          if (bias)
            s += static_cast<Sum>(
                bias[r * product.bias->strides()[0] + j * product.bias->strides()[1]]);
          c[(i * product.m + r) * product.n + j] = static_cast<T>(s);
        }
      for (int d = at.size() - 1; d >= 0; --d) {
        if (++at[d] < product.batch[d]) break;
        at[d] = 0;
      }
    }
  });
}
}  // namespace tl::cpu
