#include "ops/cpu/where.h"

#include <cstring>

#include "ops/cpu/walk.h"

namespace tl::cpu {

namespace {

template <class F>
void with_word(std::size_t size, F&& f) {
  switch (size) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

template <class M, class T>
void choose(const M* m, std::int64_t m_step, const T* x, std::int64_t x_step, const T* y,
            std::int64_t y_step, T* to, std::int64_t n) {
  if (m_step == 1 && x_step == 1 && y_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = m[i] != 0 ? x[i] : y[i];
  } else if (m_step == 1 && x_step == 0 && y_step == 1) {
    const T value = *x;
    for (std::int64_t i = 0; i < n; ++i) to[i] = m[i] != 0 ? value : y[i];
  } else if (m_step == 1 && x_step == 1 && y_step == 0) {
    const T value = *y;
    for (std::int64_t i = 0; i < n; ++i) to[i] = m[i] != 0 ? x[i] : value;
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = m[i * m_step] != 0 ? x[i * x_step] : y[i * y_step];
    }
  }
}

}  // namespace

void where(const ops::Choice& choice, Tensor& out) {
  const Stream stream = out.device().stream();
  const Dims none = Dims::repeated(out.rank(), 0);
  alignas(8) std::array<std::byte, 8> number{};
  visit_dtype("where", out.dtype(), [&]<class T> {
    const T element = choice.value.to<T>();
    std::memcpy(number.data(), &element, sizeof(T));
  });
  const auto data = [&](const Tensor* x) { return x != nullptr ? x->read(stream) : number.data(); };
  const auto strides = [&](const Tensor* x, const Layout* layout) {
    return x != nullptr ? &layout->strides() : &none;
  };
  with_word(size_of(choice.condition->dtype()), [&]<class M> {
    with_word(size_of(out.dtype()), [&]<class T> {
      const M* mask = choice.condition->read<M>(stream);
      const T* yes = reinterpret_cast<const T*>(data(choice.yes));
      const T* no = reinterpret_cast<const T*>(data(choice.no));
      T* to = out.write<T>(stream);
      walk<4>(out.shape(),
              {&choice.condition_layout->strides(), strides(choice.yes, choice.yes_layout),
               strides(choice.no, choice.no_layout), &out.strides()},
              [&](std::int64_t count, const auto& at, const auto& step) {
                choose(mask + at[0], step[0], yes + at[1], step[1], no + at[2], step[2], to + at[3],
                       count);
              });
    });
  });
}

}  // namespace tl::cpu
