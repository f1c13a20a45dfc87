// Small dense linear algebra on the host, in double: Gauss-Jordan with partial pivoting, and
// rotations of Jacobi for singular values. Matrices are the last two dimensions; those in front are
// a batch. Results have the dtype and the device of the operand; integers give f32. Gradients flow
// through all but svd, which refuses what is followed.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::lang {

tl::Tensor inverse(const tl::Tensor& x);      // throws for a singular matrix
tl::Tensor determinant(const tl::Tensor& x);  // without the last two dimensions
// a times x is b, for b (..., n) or (..., n, m) of the same batch; throws for a singular matrix.
tl::Tensor solve(const tl::Tensor& a, const tl::Tensor& b);

// x (..., m, n) is u times the diagonal matrix of s times vt, for k = min(m, n): u (..., m, k) and
// vt (..., k, n) have orthonormal columns and rows; s (..., k) falls and is not negative.
struct SingularValues {
  tl::Tensor u, s, vt;
};
SingularValues svd(const tl::Tensor& x);

}  // namespace tl::lang
