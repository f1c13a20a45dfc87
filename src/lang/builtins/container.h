// Lists, maps, tuples, vectors and what the functions over them share.
#pragma once

#include <span>
#include <string_view>

#include "lang/builtin.h"
#include "lang/value.h"

namespace tl::lang {

// len(): elements, characters of a text, the first size of a tensor.
std::int64_t length_of(const Value& value);

// Is there an element, or none, that is true? For `any` and `all` over lists; a function, where one
// is given (else Missing), is asked for each element.
bool any_of(Context& context, std::string_view who, const Value& list, const Value& test);
bool all_of(Context& context, std::string_view who, const Value& list, const Value& test);

// Rows after those of a tensor, along its first dimension. Memory that has room behind them and
// that nobody else sees is written in place, so growing by one row at a time costs one row.
// `target` stays as it is.
Value append_rows(Value& target, const tl::Tensor& rows);

// The rows of the other files of containers.
BuiltinRows sequence_builtins();  // map, filter, sorted, zip
BuiltinRows kv_cache_builtins();

}  // namespace tl::lang
