// Tensors, views and values: what shares memory, and why no write ever surprises anyone.
#include <iostream>

#include "tl/tl.h"

int main() {
  using namespace tl;

  // Values in row-major order and a shape. One size may be -1.
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, -1});
  std::cout << x << "\n\n";

  // Views cost nothing: they show the same memory through another shape.
  const Tensor column = x.get_on_dim(1, 2);                // (2): the last column
  const Tensor transposed = x.t();                         // (3, 2)
  const Tensor tail = x.slice(1, -2, 3);                   // (2, 2): the last two columns
  const Tensor wide = column.unsqueeze(1).expand({2, 4});  // (2, 4): no element is copied
  std::cout << transposed << "\n\n" << tail << "\n\n" << wide << "\n\n";
  std::cout << "the transpose shares memory: " << std::boolalpha << transposed.shares_memory_with(x)
            << "\n\n";

  // A tensor is a value. A copy shares until one of the two is written; the other keeps what it
  // had.
  Tensor y = x;
  fill_at(y, y.get(0).layout(), 0);                   // the first row of y
  assign_at(y, y.get_on_dim(1, 2).layout(), column);  // its last column, as it was in x
  std::cout << y << "\n\n" << x << "\n\n";

  // What needs a copy says so: view() refuses, reshape() copies where it must.
  try {
    transposed.view({6});
  } catch (const Error& error) {
    std::cout << error.what() << "\n\n";
  }
  std::cout << reshape(transposed, {6}) << "\n\n";

  // Any dtype to any other, and back to the host.
  const Tensor small = to_dtype(x, DType::BF16);
  std::cout << small << "\n\n";
  float total = 0;
  for (const float value : to_dtype(small, DType::F32).to_vector<float>()) total += value;
  std::cout << "the sum is " << total << "\n";
  return total == 21 ? 0 : 1;
}
