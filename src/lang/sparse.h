// Einstein sums over tensors of which only some elements are kept.
//
// A relation over 10,000 entities twice would be a tensor of 400 MB for a few thousand facts. Here
// it is a list of places and a vector of values. Places are joined on the host as the logic engine
// joins tuples; values are picked, multiplied and added on the device by ops that gradients flow
// through.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lang/builtin.h"

namespace tl::lang {

// A relation with more elements than this is never made dense by a rule or an equation.
inline constexpr std::int64_t kMostDense = std::int64_t{1} << 24;
// Pairs of places that one product may join, and elements that it may pick from dense tensors.
inline constexpr std::int64_t kMostJoined = std::int64_t{1} << 24;

struct SparseTensor {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> places;  // as many numbers for each element as there are sizes
  tl::Tensor values;                 // (n)

  std::size_t count() const { return static_cast<std::size_t>(values.count()); }
};

// sigmoid of a sum of products of rows: the elements of a relation with an embedding, computed
// where they are asked for. `weights` is (d) or has a dimension for each table.
struct SoftTensor {
  tl::Tensor weights;
  std::vector<tl::Tensor> tables;  // (n, d), one for each dimension

  std::vector<std::int64_t> sizes() const;
  tl::Tensor at(std::span<const tl::Tensor> ids) const;  // ids (n) for each dimension; gives (n)
  tl::Tensor dense() const;
};

using AnyTensor = std::variant<tl::Tensor, SparseTensor, SoftTensor>;

struct Factor {
  std::string letters;  // an index for each dimension; one that stands twice means the diagonal
  AnyTensor value;
};

std::vector<std::int64_t> sizes_of(const AnyTensor& tensor);
bool is_dense(const AnyTensor& tensor) noexcept;
// Does the number of elements go beyond what is made dense?
bool is_large(std::span<const std::int64_t> sizes) noexcept;

// The product of all factors, summed over the letters that are not in `output`. Letters of the
// output are in some factor, each once. With dense factors alone this is einsum.
tl::Tensor contract(Context& context, std::span<const Factor> factors, const std::string& output);
SparseTensor contract_sparse(Context& context, std::span<const Factor> factors,
                             const std::string& output);

SparseTensor add_sparse(Context& context, const SparseTensor& a, const SparseTensor& b);
tl::Tensor to_dense(Context& context, const SparseTensor& x);

}  // namespace tl::lang
