// The options that choose among tokens, for every command that writes text.
#pragma once

#include <memory>

#include "tl/model/chat.h"  // TextOptions

namespace CLI {  // NOLINT(readability-identifier-naming): it is theirs
class App;
}

namespace tl::cli {

void add_text_options(CLI::App& command, const std::shared_ptr<TextOptions>& options);

}  // namespace tl::cli
