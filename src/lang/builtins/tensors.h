// What the builtins over tensors share.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "lang/builtin.h"
#include "lang/convert.h"

namespace tl::lang {

// A tensor of floats: integers and truth values become f32.
tl::Tensor float_tensor(const Context& context, const Args& args, std::size_t i);
// A tensor of numbers: truth values become f32.
tl::Tensor number_tensor(const Context& context, const Args& args, std::size_t i);
// Both in one dtype and on one device.
inline void together(const Context& context, tl::Tensor& a, tl::Tensor& b) {
  bring_together(context, std::array{&a, &b});
}
// The tensors of a list, in one dtype and on one device.
std::vector<tl::Tensor> tensor_list(const Context& context, const Args& args, const Value& list);

// x * transpose(weight), (..., k) and (n, k). A quantised weight stays so, and a weight narrower
// than x is not widened first. `bias`, if it is there, is added.
tl::Tensor times_weight(Context& context, const tl::Tensor& x, const Args& args, std::size_t weight,
                        std::optional<std::size_t> bias = {});
// Indices for slices of `size`, on the device of `x`: checked here where the host knows them.
tl::Tensor row_ids(const Context& context, const Args& args, std::size_t i, std::int64_t size,
                   const Device& device);

// [a, b, ...] of the sizes.
Value dims_value(const Dims& dims);

BuiltinRows buffer_builtins();  // TensorBuffer; part of creation_builtins()
BuiltinRows view_builtins();    // part of shape_builtins()
BuiltinRows reduce_builtins();  // part of math_builtins()
BuiltinRows rope_builtins();    // part of network_builtins()

}  // namespace tl::lang
