// The tables of filters, by what they work on.
#pragma once

#include <span>
#include <string_view>

#include "model/jinja/ast.h"

namespace tl::jinja {

struct FilterRow {
  std::string_view name;
  FilterFunction filter;
};

std::span<const FilterRow> text_filters() noexcept;
std::span<const FilterRow> list_filters() noexcept;
std::span<const FilterRow> value_filters() noexcept;  // numbers, defaults, JSON

}  // namespace tl::jinja
