// The speeds at which heads turn with the position, and what makes them slower so that a model
// reaches further than it was trained for.
#pragma once

#include <cstdint>
#include <vector>

#include "tl/model/decoder_config.h"

namespace tl::arch {

struct RopeScaling {
  double factor = 1;             // every angle is divided by it
  std::vector<double> divisors;  // and then each by its own: none, or one for each pair
  // YaRN: pairs that turn often within the original context keep their speed, those that turn
  // seldom are divided by the factor, and those between get something between. 0: all are divided.
  double extrapolation = 0;  // how much of that
  double beta_fast = 32;     // turns within the original context above which a speed is kept
  double beta_slow = 1;      // and below which it is divided
  double original_context = 0;
  double magnitude = 1;  // of the cosines and sines
};

// base^(-2i / size) for i below size / 2, scaled.
RopeFrequencies rope_frequencies(double base, std::int64_t size, const RopeScaling& scaling);

// What YaRN multiplies cosines and sines by when angles are divided by `factor`: attention over
// more positions is flatter, and this sharpens it again.
double yarn_magnitude(double factor);

}  // namespace tl::arch
