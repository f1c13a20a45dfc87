#include "tl/tensor/print.h"

#include <ostream>

namespace tl {

std::string to_text(const Tensor& tensor) {
  return join("Tensor[", tensor.shape(), ", ", tensor.dtype(), "]");
}
std::string Tensor::text() const { return to_text(*this); }
std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_text(tensor); }

}  // namespace tl
