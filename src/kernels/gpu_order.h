// An order of elements as an order of unsigned integers: what min, max, arg functions and sorting
// compare.
//
// One description serves every dtype, so kernels go by element size alone. Both sides include this
// file; it is embedded as source for the run-time compilers.
#pragma once

#include "tl/base/float_bits.h"  // TL_FN

namespace tl::kernels {

using OrderBits = unsigned long long;

// The key of an element is its bits xored with one of two masks. Signed integers flip their top
// bit; floats do too when positive, and flip everything when negative. The reverse order flips the
// rest as well.
struct Order {
  OrderBits negative;   // for elements whose top bit is set
  OrderBits positive;   // for the others
  OrderBits set;        // back from a key whose top bit is set
  OrderBits clear;      // back from the others
  OrderBits magnitude;  // a float without its sign; all bits of an integer
  OrderBits infinity;   // magnitudes above this are NaN; integers have none
  OrderBits nan;        // the key of every NaN
};

// Larger keys are larger elements, or smaller ones where `reversed`. `infinity` is 0 for integers
// and else the largest magnitude that is not NaN. NaN gets the largest key or the smallest.
TL_FN Order make_order(int bytes, bool is_signed, OrderBits infinity, bool reversed,
                       bool nan_last) {
  const OrderBits all = ~0ull >> (64 - 8 * bytes);
  const OrderBits top = 1ull << (8 * bytes - 1);
  const OrderBits flip = reversed ? all : 0;
  Order order = {};
  order.nan = nan_last ? all : 0;
  if (infinity != 0) {
    order.negative = all ^ flip;
    order.positive = top ^ flip;
    // The key of a negative number has its top bit clear, unless reversed.
    order.set = reversed ? order.negative : order.positive;
    order.clear = reversed ? order.positive : order.negative;
    order.magnitude = all ^ top;
    order.infinity = infinity;
    return order;
  }
  order.negative = order.positive = order.set = order.clear = (is_signed ? top : 0) ^ flip;
  order.magnitude = all;
  order.infinity = all;
  return order;
}

// -0 has the key of 0.
template <class Bits>
TL_FN Bits order_key(const Order& order, Bits bits) {
  const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(order.magnitude));
  if (magnitude > static_cast<Bits>(order.infinity)) return static_cast<Bits>(order.nan);
  if (magnitude == 0) bits = 0;
  const bool top = (bits >> (8 * sizeof(Bits) - 1)) != 0;
  return static_cast<Bits>(bits ^ static_cast<Bits>(top ? order.negative : order.positive));
}

// -0 stays below 0, so that the key leads back to the element.
template <class Bits>
TL_FN Bits exact_key(const Order& order, Bits bits) {
  const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(order.magnitude));
  if (magnitude > static_cast<Bits>(order.infinity)) return static_cast<Bits>(order.nan);
  const bool top = (bits >> (8 * sizeof(Bits) - 1)) != 0;
  return static_cast<Bits>(bits ^ static_cast<Bits>(top ? order.negative : order.positive));
}

// The element of a key. The keys of NaN give a NaN.
template <class Bits>
TL_FN Bits bits_of_key(const Order& order, Bits key) {
  const bool top = (key >> (8 * sizeof(Bits) - 1)) != 0;
  return static_cast<Bits>(key ^ static_cast<Bits>(top ? order.set : order.clear));
}

}  // namespace tl::kernels
