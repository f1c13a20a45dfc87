// Where the models with random weights lie that make_models.py writes when the tests are built.
#pragma once

#include <string>

#include "tl/base/text.h"

namespace tl::test {

// Away from the build tree they are in the folder that TL_TEST_ROOT names.
inline std::string reference_model(const std::string& name) {
  const std::string root(environment("TL_TEST_ROOT"));
  const std::string folder = root.empty() ? TL_REFERENCE_MODELS : root + "/reference_models";
  return join(folder, '/', name, ".gguf");
}

}  // namespace tl::test
