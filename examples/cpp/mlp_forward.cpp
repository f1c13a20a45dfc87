// A small classifier: two linear layers, its weights saved to a file and loaded onto the best
// device there is.
//
//   mlp_forward [file]
#include <cstdio>
#include <iostream>
#include <random>
#include <string>

#include "tl/tl.h"

namespace {

using namespace tl;

struct Mlp {
  Tensor w1, b1;  // (hidden, in), (hidden)
  Tensor w2, b2;  // (classes, hidden), (classes)

  Tensor operator()(const Tensor& x) const {        // x: (batch, in)
    const Tensor hidden = gelu(linear(x, w1, b1));  // (batch, hidden)
    return softmax(linear(hidden, w2, b2), -1);     // (batch, classes)
  }
};

Tensor random_tensor(const Shape& shape, float scale, std::mt19937& random) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<std::size_t>(element_count("random", shape)));
  for (float& value : values) value = normal(random);
  return Tensor::from(values, shape);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::int64_t kIn = 16, kHidden = 32, kClasses = 4, kBatch = 3;
  const std::string path = argc > 1 ? argv[1] : "mlp.safetensors";
  try {
    std::mt19937 random(1);
    write_safetensors(path, {{"w1", random_tensor({kHidden, kIn}, 0.25f, random)},
                             {"b1", Tensor::zeros({kHidden}, DType::F32)},
                             {"w2", random_tensor({kClasses, kHidden}, 0.2f, random)},
                             {"b2", Tensor::zeros({kClasses}, DType::F32)}});

    const Device device = Device::best_available();
    const Safetensors file(path);
    const auto load = [&](const char* name) { return file.load(name, device); };
    const Mlp model{load("w1"), load("b1"), load("w2"), load("b2")};
    std::remove(path.c_str());

    const Tensor x = to(random_tensor({kBatch, kIn}, 1, random), device);
    const Tensor probabilities = model(x);  // (batch, classes)
    std::cout << probabilities << "\n";

    // Every row is a distribution.
    bool good = true;
    for (std::int64_t i = 0; i < kBatch; ++i) {
      float total = 0;
      for (const float p : probabilities.get(i).to_vector<float>()) total += p;
      good = good && total > 0.999f && total < 1.001f;
    }
    return good ? 0 : 1;
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
