// The model that commands use when none is named: tallow-nano, which comes with the program.
#pragma once

#include <string>

namespace tl::cli {

// The file that TL_MODEL names; else tallow-nano.gguf where an installed program has it,
// share/tallow/models beside bin; else where it lies in the source tree that the program was built
// in. Throws BadFile with the places where it was looked for.
std::string default_model_path();

// `path`, or the default model's where it is empty.
std::string model_or_default(const std::string& path);

}  // namespace tl::cli
