// Values as JSON and back.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "lang/builtins/file.h"
#include "lang/builtins/library.h"
#include "lang/builtins/text.h"

namespace tl::lang {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 256;  // levels of lists and maps

Value from_json(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(INT64_MAX)) return static_cast<double>(number);
      return static_cast<std::int64_t>(number);
    }
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return json.get_ref<const std::string&>();
    case Json::value_t::array: {
      std::vector<Value> values;
      for (const Json& each : json) values.push_back(from_json(each));
      return list_of(std::move(values));
    }
    case Json::value_t::object: {
      const Value out = make<MapObject>();
      auto& map = static_cast<MapObject&>(*out.object());
      for (const auto& [key, value] : json.items()) map.slot(Value(key)) = from_json(value);
      return out;
    }
    default:
      return {};
  }
}

// Line and column, from 1, of a byte.
std::string place_text(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n') + 1;  // 0 where there is none
  return tl::join("line ", line, ", column ", count_characters(before.substr(start)) + 1);
}

Value call_parse_json(Context&, Args& args) {
  const std::string& text = args.string(0);
  try {
    // The depth is looked at while it is read: what is read is freed level by level.
    const Json json = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kDeepest) {
        throw RuntimeError(
            tl::join("Parse error: parse_json(): JSON deeper than ", kDeepest, " levels"));
      }
      return true;
    });
    return from_json(json);
  } catch (const Json::parse_error& error) {
    // `byte` counts from 1 and is the last one of what was read.
    const std::size_t at = error.byte > 0 ? error.byte - 1 : 0;
    throw RuntimeError(
        tl::join("Parse error: parse_json(): ",
                 at < text.size() ? "this is no JSON at " : "the JSON ends early at ",
                 place_text(text, at)));
  } catch (const Json::exception&) {
    throw RuntimeError("Parse error: parse_json(): a number is too large");
  }
}

Json to_json(Context& context, const Value& value, int depth) {
  if (depth > kDeepest) {
    throw invalid_operation("to_json(): lists deeper than ", kDeepest, " levels");
  }
  switch (value.kind()) {
    case Kind::Void:
      return nullptr;
    case Kind::Bool:
      return value.boolean();
    case Kind::Int:
      return value.integer();
    case Kind::Float:
      return value.real();
    case Kind::String:
      return value.string();
    case Kind::Map: {
      Json out = Json::object();
      for (const auto& [key, each] : value.as<MapObject>().entries) {
        out[text(key)] = to_json(context, each, depth + 1);
      }
      return out;
    }
    case Kind::Tensor:
      // A loss is a number to programs.
      if (value.tensor().rank() == 0 && value.tensor().has_history()) {
        return value.tensor().detach().item().real();
      }
      [[fallthrough]];
    case Kind::QTensor:
      return to_json(context, call_builtin(context, "to_list", std::span(&value, 1)), depth);
    case Kind::List:
    case Kind::Tuple:
    case Kind::Vec:
    case Kind::Tokens:
    case Kind::Range: {
      Json out = Json::array();
      for (const Value& each : elements(context, value)) {
        out.push_back(to_json(context, each, depth + 1));
      }
      return out;
    }
    default:
      throw type_error("to_json() cannot write ", type_name(value));
  }
}

Value call_to_json(Context& context, Args& args) {
  const std::int64_t indent = args.integer(1);
  if (indent < -1 || indent > 64) args.bad_value(1, "an indent of at most 64 spaces");
  return to_json(context, args[0], 0)
      .dump(indent <= 0 ? -1 : static_cast<int>(indent), ' ', false,
            Json::error_handler_t::replace);
}

}  // namespace

BuiltinRows json_builtins() {
  static const Builtin rows[] = {
      {"parse_json", "files", "(text)",
       "The value of a JSON text: objects are maps, null is nothing.", call_parse_json},
      {"to_json", "files", "(x, indent = 0)",
       "A value as JSON, on one line or with so many spaces for each level.", call_to_json},
  };
  return rows;
}

}  // namespace tl::lang
