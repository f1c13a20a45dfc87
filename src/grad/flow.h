// What a rule sees: the gradient of an op's result, what the op read, and where to put the
// gradients of its inputs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "grad/node.h"
#include "tl/base/error.h"
#include "tl/tensor/tensor.h"

namespace tl::grad {

class Flow {
 public:
  // `follows`: gradients are to be followed themselves, so values come with their histories.
  Flow(const Node& node, Tensor gradient, bool follows)
      : node_(node),
        gradient_(std::move(gradient)),
        follows_(follows),
        given_(node.inputs().size()) {}

  const Tensor& gradient() const noexcept { return gradient_; }  // of the result, in its shape
  std::size_t size() const noexcept { return node_.inputs().size(); }  // inputs
  bool wants(std::size_t i) const { return i < size() && node_.inputs()[i].node != nullptr; }
  const Shape& shape(std::size_t i) const { return node_.inputs()[i].shape; }
  DType dtype(std::size_t i) const { return node_.inputs()[i].dtype; }
  Tensor input(std::size_t i) const;  // one that the rule keeps
  Tensor result() const;              // kept
  const Node& node() const noexcept { return node_; }
  bool follows() const noexcept { return follows_; }

  double real(std::size_t i) const { return setting<Scalar>(i).real(); }
  std::int64_t integer(std::size_t i) const { return setting<Scalar>(i).integer(); }
  bool flag(std::size_t i) const { return setting<Scalar>(i).real() != 0; }
  Scalar number(std::size_t i) const { return setting<Scalar>(i); }
  const Dims& dims(std::size_t i) const { return setting<Dims>(i); }
  const std::string& text(std::size_t i) const { return setting<std::string>(i); }
  std::size_t settings() const { return node_.settings().size(); }

  // Adds to the gradient of an input. It may have any shape that the input's was broadcast to, and
  // is summed back over those dimensions.
  void give(std::size_t i, Tensor gradient);

  std::vector<std::optional<Tensor>>& given() noexcept { return given_; }

 private:
  template <class T>
  const T& setting(std::size_t i) const {
    return std::get<T>(node_.settings().at(i));
  }

  const Node& node_;
  Tensor gradient_;
  bool follows_;
  std::vector<std::optional<Tensor>> given_;
};

// `gradient` summed over the dimensions along which `shape` was broadcast to its shape.
Tensor sum_to(const Tensor& gradient, const Shape& shape);

}  // namespace tl::grad
