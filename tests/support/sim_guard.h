// After every test: did the product misuse the simulated driver, or did anything write outside its
// block?
//
// A stale handle or a foreign pointer is only an error code in a test run, but a crash in a real
// driver. So a test that causes one fails, even when all it asserted held.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "simgpu/control.h"
#include "tl/base/text.h"

namespace tl::test {

// The simulated drivers that the environment names.
inline std::vector<std::string> simulated_drivers() {
  std::vector<std::string> paths;
  for (const char* variable : {"TL_CUDA_DRIVER", "TL_HIP_DRIVER"}) {
    std::string path(environment(variable));
    if (path.find("libsim") != std::string::npos) paths.push_back(std::move(path));
  }
  return paths;
}

class SimGuard : public testing::EmptyTestEventListener {
 public:
  SimGuard() {
    for (const std::string& path : simulated_drivers()) drivers_.emplace_back(path);
    seen_.resize(drivers_.size());
  }

  void OnTestEnd(const testing::TestInfo& /*info*/) override {
    for (std::size_t i = 0; i < drivers_.size(); ++i) {
      EXPECT_EQ(drivers_[i].check(), 0) << "guard zones around device memory were damaged";
      const std::uint64_t bad = drivers_[i].counters().bad_calls;
      if (bad > seen_[i]) {
        ADD_FAILURE() << bad - seen_[i]
                      << " driver calls with stale handles, foreign pointers or wrong ranges";
      }
      seen_[i] = bad;  // smaller after a reset
    }
  }

 private:
  std::vector<simgpu::Control> drivers_;
  std::vector<std::uint64_t> seen_;
};

}  // namespace tl::test
