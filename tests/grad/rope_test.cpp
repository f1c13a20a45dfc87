// Gradients of rotary embeddings, of what turns and of the tables.
#include "tl/ops/rope.h"

#include "grad/check.h"

namespace tl {
namespace {

using namespace test;

class RopeGradient : public OnEveryDevice {
 protected:
  Tensor made(const Shape& shape, std::uint64_t seed = 1) const {
    return spread(shape, seed, device());
  }
  Tensor ids(const std::vector<std::int64_t>& values, const Shape& shape) const {
    return Tensor::from(values, shape, device());
  }
};
TL_ON_EVERY_DEVICE(RopeGradient);

using Rope = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&);

TEST_P(RopeGradient, GoesToTheRowsThatPositionsName) {
  // Heads of 5 elements of which 4 turn; a position twice, and one that is nothing.
  const std::int64_t nothing = std::numeric_limits<std::int64_t>::max();
  const Tensor line = ids({3, 0}, {2}), each = ids({1, 3, nothing, 1}, {2, 2});
  const std::vector<Tensor> tables = {made({4, 2}, 2), made({4, 2}, 3)};
  for (const Tensor& positions : {line, each}) {
    SCOPED_TRACE(positions.shape().text());
    for (const Rope form : {Rope(rope), Rope(rope_i)}) {
      expect_gradients(
          "(b, h, t, d)",
          [&](std::span<const Tensor> in) { return form(in[0], in[1], in[2], positions); },
          {made({2, 3, 2, 5}), tables[0], tables[1]});
    }
    expect_gradients(
        "(b, t, h, d)",
        [&](std::span<const Tensor> in) { return rope_thd(in[0], in[1], in[2], positions); },
        {made({2, 2, 3, 5}), tables[0], tables[1]});
  }
}

TEST_P(RopeGradient, GoesThroughTablesThatAreLongerAndThoseOfABatch) {
  expect_gradients("longer", [](std::span<const Tensor> in) { return rope(in[0], in[1], in[2]); },
                   {made({2, 1, 2, 4}), made({5, 2}, 2), made({5, 2}, 3)});
  expect_gradients("of a batch",
                   [](std::span<const Tensor> in) { return rope_thd(in[0], in[1], in[2]); },
                   {made({2, 2, 2, 4}), made({2, 2, 2}, 2), made({2, 2, 2}, 3)});
}

TEST_P(RopeGradient, KeepsWhatTurnsOnlyForTheTables) {
  const Tensor c = made({2, 2}, 2), s = made({2, 2}, 3);
  const auto kept_blocks = [&](const Tensor& cosines) {
    device().synchronize();
    const std::uint64_t before = device().pool().live_blocks;
    const Tensor y = rope(follow(made({1, 1, 2, 4})), cosines, s);
    device().synchronize();
    return device().pool().live_blocks - before;
  };
  EXPECT_EQ(kept_blocks(c), 1u);  // the result
  EXPECT_EQ(kept_blocks(follow(c)), 2u);
}

}  // namespace
}  // namespace tl
