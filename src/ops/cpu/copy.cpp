#include "ops/cpu/copy.h"

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

}  // namespace

void copy(const Tensor& in, Tensor& out) {
  const Stream stream = out.device().stream();
  with_word(size_of(in.dtype()), [&]<class T> {
    const T* from = in.read<T>(stream);
    T* to = out.write<T>(stream);
    walk<2>(in.shape(), {&in.strides(), &out.strides()},
            [&](std::int64_t count, const auto& at, const auto& step) {
              const T* x = from + at[0];
              T* y = to + at[1];
              if (step[0] == 1 && step[1] == 1) {
                std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(T));
              } else {
                for (std::int64_t i = 0; i < count; ++i) y[i * step[1]] = x[i * step[0]];
              }
            });
  });
}

void cast(const Tensor& in, Tensor& out) {
  const Stream stream = out.device().stream();
  visit_dtype("to_dtype", in.dtype(), [&]<class From> {
    visit_dtype("to_dtype", out.dtype(), [&]<class To> {
      const From* from = in.read<From>(stream);
      To* to = out.write<To>(stream);
      walk<2>(in.shape(), {&in.strides(), &out.strides()},
              [&](std::int64_t count, const auto& at, const auto& step) {
                const From* x = from + at[0];
                To* y = to + at[1];
                if (step[0] == 1) {
                  for (std::int64_t i = 0; i < count; ++i) y[i] = convert<To>(x[i]);
                } else {
                  for (std::int64_t i = 0; i < count; ++i) y[i] = convert<To>(x[i * step[0]]);
                }
              });
    });
  });
}

void fill(Tensor& out, Scalar value) {
  const Stream stream = out.device().stream();
  visit_dtype("fill", out.dtype(), [&]<class T> {
    const T element = value.to<T>();
    T* to = out.write<T>(stream);
    walk<1>(out.shape(), {&out.strides()},
            [&](std::int64_t count, const auto& at, const auto& step) {
              T* y = to + at[0];
              for (std::int64_t i = 0; i < count; ++i) y[i * step[0]] = element;
            });
  });
}

}  // namespace tl::cpu
