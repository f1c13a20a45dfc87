#include "lang/logic_program.h"

#include <algorithm>

namespace tl::lang {

bool EntityType::has(std::string_view entity) const {
  return std::find(members.begin(), members.end(), entity) != members.end();
}

const EntityType* LogicProgram::type(std::string_view name) const {
  const auto found = entity_types.find(name);
  return found == entity_types.end() ? nullptr : &found->second;
}

const EntityType* LogicProgram::fixed_type_of(std::string_view entity,
                                              const logic::ColumnType& column) const {
  for (const auto& [name, t] : entity_types) {
    const bool may_stand = column.entity.empty() || column.entity == name;
    if (t.fixed && may_stand && t.has(entity)) return &t;
  }
  return nullptr;
}

bool LogicProgram::is_fixed_entity(std::string_view name) const {
  return fixed_type_of(name, {}) != nullptr;
}

std::shared_ptr<LogicProgram> new_logic_program() { return std::make_shared<LogicProgram>(); }

logic::Constant for_column(const logic::Constant& constant, const logic::ColumnType& column) {
  const auto* integer = std::get_if<std::int64_t>(&constant);
  if (column.kind == logic::ColumnType::Kind::Float && integer != nullptr) {
    return static_cast<double>(*integer);
  }
  return constant;
}

}  // namespace tl::lang
