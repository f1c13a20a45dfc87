// Types that programs write, and whether values are of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/builtin.h"
#include "lang/bytecode.h"
#include "lang/value.h"

namespace tl::lang {

// The sizes that names stand for within one call.
using DimNames = std::vector<std::pair<std::string_view, std::int64_t>>;

// Makes `value` one of the type where that loses nothing (2.0 for int, 1 for float, a list for a
// tensor). False when it is none.
bool convert(Context& context, Value& value, const TypeInfo& type, DimNames& names);

// Model, Tokenizer, KVCache, ...: types of what builtins bring along.
std::span<const std::string_view> host_types() noexcept;

// The dtype of float16, int64, ...; throws RuntimeError for complex16.
DType dtype_of_type(std::string_view name);

}  // namespace tl::lang
