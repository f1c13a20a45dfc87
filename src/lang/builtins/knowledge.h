// Parts of the knowledge-graph builtins that are in files of their own.
#pragma once

#include "lang/builtin.h"

namespace tl::lang {

BuiltinRows negative_sample_builtins();  // part of knowledge_builtins()

}  // namespace tl::lang
