// Functions of two elements. Shapes broadcast (right-aligned; sizes equal or one of them 1), so
// there is one form of each: what some libraries call broadcast_add is add here.
//
// Both tensors have the same dtype and device. A number on either side is converted to the tensor's
// dtype and reaches a GPU as an argument of the kernel; for an integer tensor it must be whole.
// Integers wrap; an integer divided by 0 is 0, and so is its remainder. NaN goes through maximum
// and minimum.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

Tensor add(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, Scalar b);
Tensor add(Scalar a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, Scalar b);
Tensor sub(Scalar a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, Scalar b);
Tensor mul(Scalar a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);  // integers: toward zero, as in C
Tensor div(const Tensor& a, Scalar b);
Tensor div(Scalar a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, Scalar b);
Tensor maximum(Scalar a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, Scalar b);
Tensor minimum(Scalar a, const Tensor& b);
Tensor pow(const Tensor& a,
           const Tensor& b);  // x^0 and 1^x are 1; a negative base needs a whole exponent
Tensor pow(const Tensor& a, Scalar b);
Tensor pow(Scalar a, const Tensor& b);
Tensor rem(const Tensor& a, const Tensor& b);  // with the sign of b, as a - b floor(a / b)
Tensor rem(const Tensor& a, Scalar b);
Tensor rem(Scalar a, const Tensor& b);
Tensor fmod(const Tensor& a, const Tensor& b);  // with the sign of a, as in C
Tensor fmod(const Tensor& a, Scalar b);
Tensor fmod(Scalar a, const Tensor& b);
Tensor floor_div(const Tensor& a, const Tensor& b);  // the quotient rounded down
Tensor floor_div(const Tensor& a, Scalar b);
Tensor floor_div(Scalar a, const Tensor& b);
Tensor atan2(const Tensor& a, const Tensor& b);  // the angle of the point (b, a); floats
Tensor atan2(const Tensor& a, Scalar b);
Tensor atan2(Scalar a, const Tensor& b);

Tensor bitwise_and(const Tensor& a, const Tensor& b);  // integers
Tensor bitwise_and(const Tensor& a, Scalar b);
Tensor bitwise_and(Scalar a, const Tensor& b);
Tensor bitwise_or(const Tensor& a, const Tensor& b);
Tensor bitwise_or(const Tensor& a, Scalar b);
Tensor bitwise_or(Scalar a, const Tensor& b);
Tensor bitwise_xor(const Tensor& a, const Tensor& b);
Tensor bitwise_xor(const Tensor& a, Scalar b);
Tensor bitwise_xor(Scalar a, const Tensor& b);
Tensor shift_left(const Tensor& a,
                  const Tensor& b);  // a distance outside the type shifts everything out
Tensor shift_left(const Tensor& a, Scalar b);
Tensor shift_left(Scalar a, const Tensor& b);
Tensor shift_right(const Tensor& a, const Tensor& b);  // signed numbers keep their sign
Tensor shift_right(const Tensor& a, Scalar b);
Tensor shift_right(Scalar a, const Tensor& b);

Tensor logical_and(const Tensor& a, const Tensor& b);  // u8: is it so for a != 0, b != 0
Tensor logical_and(const Tensor& a, Scalar b);
Tensor logical_and(Scalar a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, Scalar b);
Tensor logical_or(Scalar a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, Scalar b);
Tensor logical_xor(Scalar a, const Tensor& b);

Tensor eq(const Tensor& a, const Tensor& b);  // u8: 1 or 0
Tensor eq(const Tensor& a, Scalar b);
Tensor eq(Scalar a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, Scalar b);
Tensor ne(Scalar a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, Scalar b);
Tensor lt(Scalar a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, Scalar b);
Tensor le(Scalar a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, Scalar b);
Tensor gt(Scalar a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, Scalar b);
Tensor ge(Scalar a, const Tensor& b);

// ---- operators

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, Scalar b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, Scalar b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, Scalar b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, Scalar b) { return div(a, b); }
inline Tensor operator+(Scalar a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(Scalar a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(Scalar a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(Scalar a, const Tensor& b) { return div(a, b); }
Tensor operator-(const Tensor& x);
inline Tensor& operator+=(Tensor& a, const Tensor& b) { return a = add(a, b); }
inline Tensor& operator-=(Tensor& a, const Tensor& b) { return a = sub(a, b); }
inline Tensor& operator*=(Tensor& a, const Tensor& b) { return a = mul(a, b); }
inline Tensor& operator/=(Tensor& a, const Tensor& b) { return a = div(a, b); }
inline Tensor& operator+=(Tensor& a, Scalar b) { return a = add(a, b); }
inline Tensor& operator-=(Tensor& a, Scalar b) { return a = sub(a, b); }
inline Tensor& operator*=(Tensor& a, Scalar b) { return a = mul(a, b); }
inline Tensor& operator/=(Tensor& a, Scalar b) { return a = div(a, b); }

}  // namespace tl
