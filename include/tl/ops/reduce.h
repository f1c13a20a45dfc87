// Reductions: many elements become one, along any set of dimensions.
//
// `dims` names the dimensions that go away (negative ones count from the end; an empty list reduces
// nothing); with `keepdim` they stay with size 1. The forms that end in _all reduce every dimension
// to shape (). Small floats accumulate in f32, f32 in blocks so that the error grows with the
// logarithm of the count, f64 in f64; integers wrap in their dtype. NaN wins in min and max. The
// order of additions depends on shape and device only: the same input gives the same bits.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim = false);  // no elements: 0
Tensor sum_all(const Tensor& x);
Tensor prod(const Tensor& x, const Dims& dims, bool keepdim = false);  // no elements: 1
Tensor prod_all(const Tensor& x);
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim = false);  // floats; no elements: NaN
Tensor mean_all(const Tensor& x);

// Floats. The sum of squared distances from the mean over (count - correction); NaN where that is
// 0 / 0. std_dev is its square root.
Tensor var(const Tensor& x, const Dims& dims, double correction = 1, bool keepdim = false);
Tensor var_all(const Tensor& x, double correction = 1);
Tensor std_dev(const Tensor& x, const Dims& dims, double correction = 1, bool keepdim = false);
Tensor std_dev_all(const Tensor& x, double correction = 1);

// Throw BadArgument when there are no elements to choose from.
Tensor min(const Tensor& x, const Dims& dims, bool keepdim = false);
Tensor min_all(const Tensor& x);
Tensor max(const Tensor& x, const Dims& dims, bool keepdim = false);
Tensor max_all(const Tensor& x);

// The first index (u32) of the smallest or largest element, of the first NaN if there is one. The
// _all forms count through the elements in row-major order. Overflow when 32 bits do not hold
// every index.
Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor argmin_all(const Tensor& x);
Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor argmax_all(const Tensor& x);

// u8, 0 or 1: are all elements, is any element other than 0? NaN is. Bools too.
Tensor all(const Tensor& x, const Dims& dims, bool keepdim = false);
Tensor all_all(const Tensor& x);
Tensor any(const Tensor& x, const Dims& dims, bool keepdim = false);
Tensor any_all(const Tensor& x);
// i64
Tensor count_nonzero(const Tensor& x, const Dims& dims, bool keepdim = false);
Tensor count_nonzero_all(const Tensor& x);

// Floats. log(sum(exp(x))) without overflow; nothing, or only -inf, gives -inf.
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false);
Tensor logsumexp_all(const Tensor& x);
// Floats. (sum |x|^p)^(1/p); p may be infinity (the largest |x|), -infinity (the smallest) or 0
// (how many are not 0).
Tensor norm(const Tensor& x, const Dims& dims, double p = 2, bool keepdim = false);
Tensor norm_all(const Tensor& x, double p = 2);

}  // namespace tl
