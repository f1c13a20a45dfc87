// Matrices with a row for every entity or relation.
#pragma once

#include <string>
#include <vector>

#include "lang/builtin.h"
#include "lang/logic_program.h"

namespace tl::lang {

std::vector<std::string> embedding_rows(Context& context, const EmbeddingInfo& e);
std::int64_t embedding_row(Context& context, const EmbeddingInfo& e,
                           const std::string& name);  // -1: it has none

// Of shape (rows, dimension), or any other: the first size is the number of rows.
tl::Tensor initial_embedding(Context& context, ast::Init init, const Shape& shape);

// The matrix with so many rows, those that are new as they begin. A parameter stays the one it is.
Value grown_embedding(Context& context, ast::Init init, const Value& matrix, std::int64_t rows);

}  // namespace tl::lang
