// The devices this process has opened.
#pragma once

#include <vector>

namespace tl {

class Context;

std::vector<Context*> opened_contexts();

}  // namespace tl
