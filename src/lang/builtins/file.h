// The rows of the other files about files.
#pragma once

#include "lang/builtin.h"

namespace tl::lang {

BuiltinRows json_builtins();

}  // namespace tl::lang
