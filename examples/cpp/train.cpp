// Training in C++: gradients, an optimiser, layers that are computed again to save memory, and a
// state that is saved.
#include <cmath>
#include <iostream>
#include <vector>

#include "tl/tl.h"

namespace {

using namespace tl;

// Two layers; x (batch, 2), w1 (2, 16), w2 (16, 1).
Tensor predict(const Tensor& x, const Tensor& w1, const Tensor& w2) {
  return matmul(tanh(matmul(x, w1)), w2);  // (batch, 1)
}

bool near(double a, double b) { return std::fabs(a - b) < 1e-4; }

}  // namespace

int main() {
  try {
    const Device device = Device::best_available();
    device.set_seed(1);
    const Tensor x = rand_uniform(-1, 1, {64, 2}, DType::F32, device);
    const Tensor y = sub(sin(mul(x.narrow(1, 0, 1), 2)), x.narrow(1, 1, 1));  // (64, 1)
    std::vector<Tensor> weights = {rand_normal(0, 1, {2, 16}, DType::F32, device),
                                   rand_normal(0, 0.25, {16, 1}, DType::F32, device)};

    // Parameters are plain tensors; each step follows them anew.
    const auto optimizer = make_adam({.rate = 0.05});
    const Schedule schedule{.kind = Schedule::Kind::Cosine, .period = 150, .warmup = 5};
    double first = 0, last = 0;
    for (int step = 0; step < 150; ++step) {
      const Tensor w1 = follow(weights[0]), w2 = follow(weights[1]);
      const Tensor loss = mse_loss(predict(x, w1, w2), y);
      const Gradients found = backward(loss);  // drops what the ops kept, behind itself
      std::vector<Tensor> gradients = {found.of(w1), found.of(w2)};
      clip_gradients(gradients, 1.0);
      optimizer->set_rate(schedule.rate(0.05, step));
      optimizer->step(weights, gradients);
      last = loss.item().real();
      if (step == 0) first = last;
    }
    std::cout << "the loss fell to less than a tenth: " << std::boolalpha << (last < first / 10)
              << "\n";

    // What is computed while a NoHistory lives keeps nothing.
    const Tensor w1 = follow(weights[0]);
    bool plain = false;
    {
      const NoHistory none;
      plain = !predict(x, w1, weights[1]).has_history();
    }

    // checkpoint() keeps its inputs and computes what is inside again: the same gradient.
    const auto layers = [](std::span<const Tensor> in) { return predict(in[0], in[1], in[2]); };
    const Tensor whole = mse_loss(predict(x, w1, weights[1]), y);
    const Tensor again = mse_loss(checkpoint(layers, {x, w1, weights[1]}), y);
    const double a = norm_all(backward(whole).of(w1)).item().real();
    const double b = norm_all(backward(again).of(w1)).item().real();

    // Gradients of gradients: the derivative of 3 x^2 is 6 x.
    const Tensor at = follow(Tensor::from(std::vector<float>{2}, {1}, device));
    const Tensor cube = sum_all(mul(at, sqr(at)));
    const std::vector<Tensor> wanted = {at};
    const Tensor slope = gradients_of(cube, wanted, {.follow = true})[0];
    const double curve = gradients_of(sum_all(slope), wanted)[0].item().real();

    // The state goes into a file as named tensors, and another optimiser goes on with it.
    const auto other = make_adam({.rate = 0.05});
    other->load_state(optimizer->state());

    const bool good = last < first / 10 && plain && near(a, b) && near(curve, 12) &&
                      other->steps() == optimizer->steps();
    std::cout << (good ? "all is as it should be\n" : "something is wrong\n");
    return good ? 0 : 1;
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
