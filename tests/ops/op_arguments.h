// Arguments for every op of the table, made by the names of its parameters: for tests that walk the
// whole table, so that a new op is tried without a line of test of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tl/ops/table.h"

namespace tl::test {

// The parameters of a signature that have no default: "(x, dim = -1)" has x.
inline std::vector<std::string> needed_parameters(std::string_view signature) {
  std::vector<std::string> names;
  std::string name;
  bool in_default = false;
  int depth = 0;
  for (const char c : signature.substr(1)) {  // past the bracket
    if (depth == 0 && (c == ',' || c == ')')) {
      if (!in_default && !name.empty()) names.push_back(name);
      name.clear();
      in_default = false;
      continue;
    }
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == '=') in_default = true;
    if (c != ' ' && !in_default) name += c;
  }
  return names;
}

// Arguments by the name of the parameter, and those of ops that want more of their shapes. `n` is
// the size of their first dimension: 0, or at least 2 and at most 4.
template <class Make>  // (shape, dtype) -> Tensor on the device
class Arguments {
 public:
  Arguments(Device on, std::int64_t count, DType dtype, Make make)
      : device_(std::move(on)), n_(count), dtype_(dtype), make_(std::move(make)) {}

  std::vector<OpValue> arguments(const OpRow& row) const {
    const Tensor ids = make({n_}, DType::I64);
    const Tensor x = make({n_, 4});
    const Tensor line = make({n_, 3, 8}), plane = make({n_, 3, 8, 8}), box = make({n_, 3, 8, 8, 8});
    const Tensor heads = make({n_, 2, 5, 4}), table = make({5, 2});
    const Dims two{2};
    using List = std::vector<Tensor>;
    const std::map<std::string_view, std::vector<OpValue>> special = {
        {"conv1d", {line, make({4, 3, 2})}},
        {"conv2d", {plane, make({4, 3, 2, 2})}},
        {"conv3d", {box, make({4, 3, 2, 2, 2})}},
        {"conv_transpose1d", {line, make({3, 4, 2})}},
        {"conv_transpose2d", {plane, make({3, 4, 2, 2})}},
        {"conv_transpose3d", {box, make({3, 4, 2, 2, 2})}},
        {"avg_pool1d", {line, two}},
        {"max_pool1d", {line, two}},
        {"avg_pool2d", {plane, two}},
        {"max_pool2d", {plane, two}},
        {"adaptive_avg_pool2d", {plane, two}},
        {"global_avg_pool2d", {plane}},
        {"global_max_pool2d", {plane}},
        {"upsample_nearest1d", {line, Scalar(5)}},
        {"interpolate1d", {line, Scalar(5)}},
        {"upsample_nearest2d", {plane, Scalar(5), Scalar(3)}},
        {"interpolate2d", {plane, Scalar(5), Scalar(3)}},
        {"upsample_bilinear2d", {plane, Scalar(5), Scalar(3)}},
        {"upsample_bilinear2d_with_scale", {plane, Scalar(2), Scalar(0.5)}},
        {"pixel_shuffle", {make({n_, 4, 3, 3}), Scalar(2)}},
        {"pixel_unshuffle", {plane, Scalar(2)}},
        {"attention", {heads, heads, heads}},
        {"rope", {heads, table, table}},
        {"rope_i", {heads, table, table}},
        {"rope_thd", {make({n_, 5, 2, 4}), table, table}},
        {"matmul", {x, make({4, 3})}},
        {"bmm", {make({n_, 2, 4}), make({n_, 4, 3})}},
        {"dot", {make({n_}), make({n_})}},
        {"mv", {x, make({4})}},
        {"outer", {make({n_}), make({4})}},
        {"linear", {x, make({3, 4})}},
        {"addmm", {make({3}), x, make({4, 3})}},
        {"einsum", {std::string("ij,kj->ik"), List{x, x}}},
        {"layer_norm_over", {x, Dims{4}}},
        {"group_norm", {x, Scalar(2)}},
        {"batch_norm", {x, make({4}), make({4})}},
        {"index_select", {x, Scalar(1), ids}},
        {"embedding", {make({n_, 4}), ids}},
        {"gather", {x, Scalar(1), make({n_, 2}, DType::I64)}},
        {"take_along", {x, Scalar(1), make({n_, 2}, DType::I64)}},
        {"scatter", {x, Scalar(1), make({n_, 2}, DType::I64), make({n_, 2})}},
        {"scatter_value", {x, Scalar(1), make({n_, 2}, DType::I64), Scalar(1)}},
        {"scatter_add", {x, Scalar(1), make({n_, 2}, DType::I64), make({n_, 2})}},
        {"index_add", {x, Scalar(1), ids, make({n_, n_})}},
        {"index_copy", {x, Scalar(1), ids, make({n_, n_})}},
        {"where", {make({n_, 4}, DType::Bool), make({n_, 4}), make({n_, 4})}},
        {"arange", {Scalar(3), Scalar(3 + n_), Scalar(1), dtype_, device_}},
        {"randint", {Scalar(0), Scalar(5), Dims{n_, 4}, dtype_, device_}},
        {"bernoulli", {Scalar(0.5), Dims{n_, 4}, dtype_, device_}},
        {"linspace", {Scalar(0), Scalar(1), Scalar(n_), dtype_, device_}},
        {"meshgrid", {List{make({n_}), make({3})}}},
        {"slice_scatter", {x, make({n_, 2}), Scalar(1), Scalar(1)}},
        {"cosine_similarity", {x, make({n_, 4})}},
        {"one_hot", {ids, Scalar(3), DType::F32}},
        // All of a tensor has no smallest element: along a dimension that has some.
        {"min", {x, Dims{1}}},
        {"max", {x, Dims{1}}},
        {"argmin", {x, Scalar(1)}},
        {"argmax", {x, Scalar(1)}},
    };
    if (const auto found = special.find(row.name); found != special.end()) return found->second;
    const std::map<std::string_view, OpValue> by_name = {
        {"x", x},
        {"a", x},
        {"b", make({n_, 4})},
        {"target", make({n_, 4})},
        {"logits", x},
        {"ids", ids},
        {"targets", ids},
        {"mask", make({n_, 4}, DType::Bool)},
        {"src", make({n_ * 4})},
        {"list", List{x, x}},
        {"shape", Dims{n_, 4}},
        {"dims", Dims{1}},
        {"counts", Dims{2, 3}},
        {"before", Dims{0, 1}},
        {"after", Dims{0, 2}},
        {"dtype", dtype_},
        {"device", device_},
    };
    std::vector<OpValue> out;
    for (const std::string& name : needed_parameters(row.signature)) {
      const auto found = by_name.find(name);
      if (found != by_name.end()) {
        out.push_back(found->second);
      } else {
        out.emplace_back(Scalar(name == "n" ? n_ : 1));  // a number
      }
    }
    return out;
  }

 private:
  Tensor make(const Shape& shape) const { return make_(shape, dtype_); }
  Tensor make(const Shape& shape, DType dtype) const { return make_(shape, dtype); }

  Device device_;
  std::int64_t n_;
  DType dtype_;
  mutable Make make_;  // may count its calls
};

}  // namespace tl::test
