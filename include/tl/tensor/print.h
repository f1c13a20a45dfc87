// How tensors are printed: as NumPy does it, with commas, then a line with shape, dtype and device.
//
//   [[0.5000, 1.2500],
//    [2.0000, 3.7500]]
//   Tensor[[2, 2], f32, cuda:0]
//
// A tensor with more elements than the threshold shows only the edges of each dimension, and only
// those are read from the device. The options belong to the process; reading and setting them is
// safe from any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "tl/tensor/tensor.h"

namespace tl {

enum class Scientific : std::uint8_t {
  Auto,  // when the finite values other than 0 span more than 1000 times the smallest, or the
         // largest is above 1e8, or the smallest below 1e-4
  Always,
  Never,
};

struct PrintOptions {
  int precision = 4;              // digits after the point
  std::int64_t threshold = 1000;  // more elements than this are summarised
  int edge_items = 3;             // how many are then shown at either end of a dimension
  int line_width = 80;
  Scientific scientific = Scientific::Auto;

  static PrintOptions standard() { return {}; }
  static PrintOptions brief();
  static PrintOptions full();  // never summarised

  friend bool operator==(const PrintOptions&, const PrintOptions&) = default;
};

PrintOptions print_options();
// These throw BadArgument for a negative number, a line width of 0 or a precision above 100.
void set_print_options(const PrintOptions& options);
void set_print_precision(int precision);
void set_print_threshold(std::int64_t threshold);
void set_print_edge_items(int edge_items);
void set_print_line_width(int line_width);
void set_print_scientific(Scientific scientific);

std::string to_text(const Tensor& tensor);  // with print_options()
std::string to_text(const Tensor& tensor, const PrintOptions& options);
// One line for logs: "Tensor[1, 2.5; f32]" for up to nine elements in at most one dimension, else
// "Tensor[dims 2, 3; f32, cuda:0]".
std::string to_debug_text(const Tensor& tensor);

}  // namespace tl
