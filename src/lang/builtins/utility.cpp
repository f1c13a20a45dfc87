#include "lang/builtins/utility.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <istream>
#include <ostream>
#include <thread>

#include "lang/builtins/library.h"
#include "lang/builtins/text.h"
#include "lang/operators.h"
#include "lang/row_work.h"
#include "tl/base/text.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

// A place for a value in the first argument of print: {} or {:form}. Others are text.
struct Place {
  std::size_t begin = std::string_view::npos, end = 0;
  std::string_view form;
};

Place next_place(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('{', from); at != std::string_view::npos;
       at = text.find('{', at + 1)) {
    if (at + 1 < text.size() && text[at + 1] == '}') return {at, at + 2, {}};
    if (at + 1 >= text.size() || text[at + 1] != ':') continue;
    const std::size_t close = text.find_first_of("{}", at + 1);
    if (close == std::string_view::npos || text[close] != '}') continue;
    return {at, close + 1, text.substr(at + 2, close - at - 2)};
  }
  return {};
}

std::string filled(std::string_view form, std::span<const Value> values) {
  std::string out;
  std::size_t from = 0, next = 0;
  for (;;) {
    const Place place = next_place(form, from);
    out += form.substr(from, place.begin - from);
    if (place.begin == std::string_view::npos) return out;
    if (next == values.size()) throw invalid_operation("Not enough arguments for format string");
    out += formatted(values[next++], place.form);
    from = place.end;
  }
}

}  // namespace

std::string print_text(std::span<const Value> values) {
  if (values.size() > 1 && values[0].is(Kind::String) &&
      next_place(values[0].string(), 0).begin != std::string_view::npos) {
    return filled(values[0].string(), values.subspan(1));
  }
  std::string out;
  for (const Value& each : values) {
    if (&each != values.data()) out += ' ';
    out += text(each);
  }
  return out;
}

void print(Context& context, std::span<const Value> values) {
  *context.out << print_text(values) << '\n';
}

namespace {

Value call_print(Context& context, Args& args) {
  print(context, args.from(0));
  return {};
}

// An answer that comes word by word is seen word by word.
Value call_write(Context& context, Args& args) {
  *context.out << print_text(args.from(0)) << std::flush;
  return {};
}

Value call_verbose(Context& context, Args& args) {
  context.verbose = args.boolean(0);
  return {};
}

Value call_input(Context& context, Args& args) {
  if (args.has(0)) *context.out << text(args[0]) << std::flush;
  std::string line;
  if (context.in == nullptr || !std::getline(*context.in, line)) return "";
  line.erase(line.find_last_not_of(" \t\r\n\v\f") + 1);
  return line;
}

Value call_env(Context&, Args& args) {
  const std::string& name = args.string(0);
  if (const char* value = std::getenv(name.c_str())) return value;
  if (args.has(1)) return args[1];
  throw invalid_operation("Environment variable '", name, "' not found");
}

Value call_args(Context& context, Args&) { return list_of_texts(context.arguments); }

Value call_cleanup(Context& context, Args&) {
  context.device->trim();
  return {};
}

// ---- assertions

[[noreturn]] void failed(const Args& args, std::size_t message, const std::string& what) {
  if (args.has(message)) throw RuntimeError("assertion failed: " + text(args[message]));
  throw RuntimeError("assertion failed: " + what);
}

Value call_assert(Context&, Args& args) {
  if (!truth(args[0], "assert")) failed(args, 1, "the condition is false");
  return {};
}

Value call_assert_eq(Context&, Args& args) {
  if (!equal(args[0], args[1])) {
    std::string what = tl::join("left is ", quoted(args[0]), ", right is ", quoted(args[1]));
    if (!args[0].is(args[1].kind())) {
      what += tl::join(" (", type_name(args[0]), " and ", type_name(args[1]), ")");
    }
    failed(args, 2, what);
  }
  return {};
}

std::vector<double> numbers(const tl::Tensor& tensor) {
  return to_dtype(tensor, DType::F64).to_vector<double>();
}

Value call_assert_about_eq(Context& context, Args& args) {
  const double bound = args.real(2);
  const std::string both = tl::join("left is ", quoted(args[0]), ", right is ", quoted(args[1]));
  if (args[0].is_number() && args[1].is_number()) {
    const double distance = std::abs(args[0].number() - args[1].number());
    if (!(distance < bound || args[0].number() == args[1].number())) {
      failed(args, 3, tl::join(both, ", ", distance, " apart; the bound is ", bound));
    }
    return {};
  }
  const tl::Tensor left = args.tensor(context, 0), right = args.tensor(context, 1);
  if (left.shape() != right.shape()) {
    failed(args, 3,
           tl::join(both, ": shapes ", bracketed(left.shape()), " and ", bracketed(right.shape())));
  }
  const std::vector<double> a = numbers(left), b = numbers(right);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double distance = std::abs(a[i] - b[i]);
    if (distance < bound || a[i] == b[i]) continue;
    failed(args, 3,
           tl::join(both, ": element ", i, " is ", a[i], " and ", b[i], ", ", distance,
                    " apart; the bound is ", bound));
  }
  return {};
}

// ---- time, memory, types

Value call_type(Context&, Args& args) { return type_name(args[0]); }

Value call_time(Context&, Args&) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

Value call_sleep(Context& context, Args& args) {
  const double seconds = args.real(0);
  if (!(seconds >= 0)) args.bad_value(0, "seconds from 0");
  constexpr std::chrono::duration<double> kAtOnce{0.02};  // then it asks for an interrupt
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    context.check_interrupt();
    const std::chrono::duration<double> left =
        std::chrono::duration<double>(seconds) - (std::chrono::steady_clock::now() - start);
    if (left.count() <= 0) return {};
    std::this_thread::sleep_for(std::min(left, kAtOnce));
  }
}

// What the program holds, and not what is kept to run it.
void settle(Context& context) {
  if (context.rows != nullptr) context.rows->clear();
}

Value call_memory_live(Context& context, Args&) {
  settle(context);
  return static_cast<std::int64_t>(context.device->pool().live_bytes);
}

Value call_memory_report(Context& context, Args&) {
  settle(context);
  const PoolStatistics pool = context.device->pool();
  const Value out = make<MapObject>();
  auto& map = static_cast<MapObject&>(*out.object());
  map.slot("device") = context.device->text();
  const auto add = [&](const char* key, std::uint64_t number) {
    map.slot(key) = static_cast<std::int64_t>(number);
  };
  add("live_bytes", pool.live_bytes);
  add("live_blocks", pool.live_blocks);
  add("peak_bytes", pool.peak_bytes);
  add("pooled_bytes", pool.pooled_bytes);
  add("reserved_bytes", pool.reserved_bytes);
  add("mapped_bytes", pool.mapped_bytes);
  add("allocations", pool.allocations);
  add("reuses", pool.hits);
  return out;
}

Value call_help(Context& context, Args& args) {
  if (!args.has(0)) {
    *context.out << BuiltinTable::instance().all().size()
                 << " functions; help(\"name\") tells about one\n";
    return {};
  }
  const bool is_function = args[0].is(Kind::Function);
  const Builtin* builtin = is_function ? args[0].as<FunctionObject>().builtin
                                       : BuiltinTable::instance().find(args.string(0));
  if (builtin == nullptr) {
    if (is_function) throw invalid_operation("help() knows the functions of the language only");
    std::vector<std::string> names;
    for (const Builtin* each : BuiltinTable::instance().all()) names.emplace_back(each->name);
    throw invalid_operation("there is no function '", args.string(0), "'",
                            did_you_mean(args.string(0), names));
  }
  *context.out << builtin->name << builtin->signature << "\n  " << builtin->help << '\n';
  return {};
}

}  // namespace

BuiltinRows utility_builtins() {
  static const Builtin rows[] = {
      {"print", "utilities", "(...values)",
       "Writes a line: the values with spaces between them, or in the places {} of the first.",
       call_print},
      {"write", "utilities", "(...values)",
       "The same as print without the end of the line, shown at once.", call_write},
      {"verbose", "utilities", "(on)",
       "Whether loading and saving tell what they did (\"Loaded model from: ...\"); at first they "
       "do.",
       call_verbose},
      {"input", "utilities", "(prompt = none)",
       "A line of the standard input without white space at its end; empty at the end.",
       call_input},
      {"env", "utilities", "(name, otherwise = none)",
       "The value of an environment variable, or `otherwise` where there is none.", call_env},
      {"args", "utilities", "()", "What was written after the program on the command line.",
       call_args},
      {"cleanup", "utilities", "(...names)",
       "Gives memory that is kept for reuse back to the device's driver.", call_cleanup},
      {"assert", "utilities", "(condition, message = none)", "Fails when the condition is false.",
       call_assert},
      {"assert_eq", "utilities", "(a, b, message = none)",
       "Fails unless both are of one kind and equal.", call_assert_eq},
      {"assert_about_eq", "utilities", "(a, b, bound = 1e-6, message = none)",
       "Fails when numbers or elements of tensors are not nearer than the bound.",
       call_assert_about_eq},
      {"type", "utilities", "(x)", "The name of a value's kind.", call_type},
      {"time", "utilities", "()", "Seconds since 1970.", call_time},
      {"sleep", "utilities", "(seconds)", "Waits.", call_sleep},
      {"memory_live", "utilities", "()", "Bytes that tensors hold on the device.",
       call_memory_live},
      {"memory_report", "utilities", "()",
       "What the device's memory pool says of itself, as a map.", call_memory_report},
      {"help", "utilities", "(name = none)", "Shows what a function takes and does.", call_help},
  };
  return rows;
}

}  // namespace tl::lang
