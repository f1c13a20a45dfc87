// The ops of tl/ops/table.h as builtins. A row there is a builtin here: its parameters say what
// their arguments are converted to, and their names what a tensor among them is for.
#include <algorithm>
#include <array>
#include <deque>

#include "lang/builtin.h"
#include "lang/convert.h"
#include "tl/ops/copy.h"
#include "tl/ops/table.h"

namespace tl::lang {

namespace {

constexpr std::size_t kMostParameters = 12;

// What a tensor is to an op, which the name of its parameter says.
enum class Role : std::uint8_t {
  Data,   // of one dtype with the other data
  Index,  // integers
  Mask,   // truth values
  Bias,   // truth values, or data that is added
};

Role role_of(std::string_view op, std::string_view parameter) {
  if (parameter == "ids" || parameter == "targets" || parameter == "positions") return Role::Index;
  if (parameter == "condition") return Role::Mask;
  if (parameter == "mask") return op == "attention" ? Role::Bias : Role::Mask;
  return Role::Data;
}

struct Bridge {
  const OpRow* row;
  std::vector<std::optional<OpValue>> defaults;
  std::vector<Role> roles;
  bool elementwise = false;  // numbers alone give a number
  bool reduces = false;      // without dims it gives a number
};

Scalar number_of(const Args& args, std::size_t i) {
  const Value& value = args[i];
  if (value.is(Kind::Int) || value.is(Kind::Bool)) return value.integer();
  return args.real(i);
}

// One call: the arguments as the op takes them.
class Call {
 public:
  Call(Context& context, const Args& args, const Bridge& bridge)
      : context_(context), args_(args), bridge_(bridge) {}

  Value run() {
    const auto parameters = bridge_.row->call.parameters;
    if (bridge_.elementwise) numbers_only_ = only_numbers();
    for (std::size_t i = 0; i < parameters.size(); ++i) values_[i] = argument(i, parameters[i]);
    if (!has_data_) raise_number();
    bring_data_together();
    const std::span<const OpValue> values(values_.data(), parameters.size());
    return result(bridge_.row->call(bridge_.row->name, values));
  }

 private:
  bool only_numbers() const {
    for (std::size_t i = 0; i < args_.size(); ++i) {
      if (args_.has(i) && !args_[i].is_number() && !args_[i].is(Kind::Bool)) return false;
    }
    return true;
  }

  std::string who() const { return join(args_.name(), "()"); }

  OpValue argument(std::size_t i, const OpParameter& parameter) {
    if (!args_.has(i)) return missing(i, parameter);
    switch (parameter.kind) {
      case OpKind::Tensor:
        return tensor(i);
      case OpKind::Tensors:
        return tensors(i);
      case OpKind::TensorOrNumber:
        if (args_[i].is_number() || args_[i].is(Kind::Bool)) return number_of(args_, i);
        return tensor(i);
      case OpKind::Number:
        return number_of(args_, i);
      case OpKind::Integer:
        return Scalar(args_.integer(i));
      case OpKind::Boolean:
        return args_.boolean(i);
      case OpKind::Dims:
        return args_.dims(i);
      case OpKind::Text:
        return args_.string(i);
      case OpKind::DType:
        return args_.dtype(i);
      case OpKind::Device:
        return Device::parse(args_.string(i));
    }
    return NoValue{};
  }

  OpValue missing(std::size_t i, const OpParameter& parameter) const {
    if (bridge_.defaults[i]) return *bridge_.defaults[i];
    if (parameter.kind == OpKind::DType) return DType::F32;
    if (parameter.kind == OpKind::Device) return context_.device;
    args_.bad(i, "a value");
  }

  OpValue tensor(std::size_t i) {
    switch (bridge_.roles[i]) {
      case Role::Index:
        others_ = true;
        return index_tensor(context_, who(), args_[i]);
      case Role::Mask:
        others_ = true;
        return mask_tensor(context_, who(), args_[i]);
      case Role::Bias: {
        tl::Tensor mask = args_.tensor(context_, i);
        if (!is_float(mask.dtype())) {
          others_ = true;
          return mask;
        }
        has_data_ = true;
        return mask;
      }
      case Role::Data:
        break;
    }
    has_data_ = true;
    // Numbers alone are computed in double, on the host.
    if (numbers_only_) return tl::Tensor::from({args_.real(i)}, {});
    return args_.tensor(context_, i);
  }

  // Where a tensor or a number may stand and only numbers do, the first becomes a tensor.
  void raise_number() {
    const auto parameters = bridge_.row->call.parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto* number = std::get_if<Scalar>(&values_[i]);
      if (parameters[i].kind != OpKind::TensorOrNumber || number == nullptr) continue;
      const double real = number->real();
      values_[i] = numbers_only_
                       ? tl::Tensor::from({real}, {})
                       : tl::Tensor::from({static_cast<float>(real)}, {}, context_.device);
      return;
    }
  }

  OpValue tensors(std::size_t i) const {
    const Value& value = args_[i];
    if (!value.is(Kind::List) && !value.is(Kind::Tuple)) args_.bad(i, "a list of tensors");
    std::vector<tl::Tensor> parts;
    for (std::size_t k = 0; k < list_size(value); ++k) {
      parts.push_back(to_tensor(context_, who(), list_item(value, k)));
    }
    std::vector<tl::Tensor*> all;
    for (tl::Tensor& part : parts) all.push_back(&part);
    bring_together(context_, all);
    return parts;
  }

  bool is_data(std::size_t i) const {
    if (!std::holds_alternative<tl::Tensor>(values_[i])) return false;
    const Role role = bridge_.roles[i];
    return role == Role::Data ||
           (role == Role::Bias && is_float(std::get<tl::Tensor>(values_[i]).dtype()));
  }

  // Data in one dtype that the op takes, everything on one device.
  void bring_data_together() {
    const std::size_t count = bridge_.row->call.parameters.size();
    std::array<tl::Tensor*, kMostParameters> data{};
    std::size_t found = 0;
    bool fraction = false;  // a number that integers cannot take
    for (std::size_t i = 0; i < count; ++i) {
      if (is_data(i)) data[found++] = &std::get<tl::Tensor>(values_[i]);
      if (const auto* number = std::get_if<Scalar>(&values_[i])) {
        fraction = fraction || (bridge_.row->call.parameters[i].kind != OpKind::Integer &&
                                !number->is_integral());
      }
    }
    if (found == 0) return;
    bring_together(context_, std::span(data.data(), found));
    if (const auto wanted = taken_dtype(data[0]->dtype(), fraction)) {
      for (std::size_t i = 0; i < found; ++i) *data[i] = to_dtype(*data[i], *wanted);
    }
    first_dtype_ = data[0]->dtype();
    if (!others_) return;
    for (std::size_t i = 0; i < count; ++i) {
      if (auto* other = std::get_if<tl::Tensor>(&values_[i]);
          other != nullptr && other->location() != data[0]->location()) {
        *other = to(*other, data[0]->device());
      }
    }
  }

  // f32 where the op does not take the dtype and takes that; nothing where it stays.
  std::optional<DType> taken_dtype(DType dtype, bool fraction) const {
    const bool first_is_data = bridge_.roles[0] == Role::Data;
    const DTypeSet set = first_is_data ? bridge_.row->dtypes : kAnySet;
    const bool takes = set.has(dtype) && !(fraction && !is_float(dtype));
    if (takes || !set.has(DType::F32)) return std::nullopt;
    return DType::F32;
  }

  // Truth values and positions as the language has them.
  Value item(tl::Tensor x) const {
    const bool judges = bridge_.elementwise || bridge_.reduces;
    if (judges && x.dtype() == DType::U8 && first_dtype_ != DType::U8) {
      x = x.reinterpret(DType::Bool);
    } else if (x.dtype() == DType::U32 && first_dtype_ != DType::U32) {
      x = to_dtype(x, DType::I64);
    }
    if (numbers_only_) return from_tensor_item(x);
    if (bridge_.reduces && x.rank() == 0 && !args_.has(1)) return lang::number_of(x);
    return x;
  }

  Value result(std::vector<tl::Tensor> results) const {
    if (results.size() == 1) return item(std::move(results[0]));
    std::vector<Value> values;
    values.reserve(results.size());
    for (tl::Tensor& x : results) values.push_back(item(std::move(x)));
    return make<TupleObject>(std::move(values));
  }

  Context& context_;
  const Args& args_;
  const Bridge& bridge_;
  std::array<OpValue, kMostParameters> values_;
  DType first_dtype_ = DType::F32;
  bool numbers_only_ = false;
  bool has_data_ = false;
  bool others_ = false;  // tensors that are no data
};

Value call_row(Context& context, Args& args) {
  return Call(context, args, *static_cast<const Bridge*>(args.builtin().data)).run();
}

// The signature as the language has it: dtype and device may be left out, and dimensions to reduce
// are called `dim` as everywhere.
std::string language_signature(std::string_view signature) {
  std::string out(signature);
  for (const std::string_view name : {"dtype", "device"}) {
    for (const char next : {',', ')'}) {
      const std::string wanted = join(name, next);
      if (const auto at = out.find(wanted); at != std::string::npos) {
        out.replace(at, wanted.size(), join(name, " = none", next));
      }
    }
  }
  if (const auto at = out.find("dims = none"); at != std::string::npos) out.erase(at + 3, 1);
  return out;
}

std::string_view parameter_name(std::string_view signature, std::size_t i) {
  std::size_t at = 1;
  int depth = 0;
  for (std::size_t k = 1; i > 0 && k < signature.size(); ++k) {
    if (signature[k] == '(') ++depth;
    if (signature[k] == ')') --depth;
    if (signature[k] == ',' && depth == 0 && --i == 0) at = k + 2;
  }
  const std::size_t end = signature.find_first_of(" ,)", at);
  return signature.substr(at, end - at);
}

}  // namespace

std::vector<Builtin> op_builtins() {
  static std::deque<Bridge> bridges;
  static std::deque<std::string> signatures;
  std::vector<Builtin> rows;
  for (const OpRow& row : op_table()) {
    const std::size_t count = row.call.parameters.size();
    if (count > kMostParameters) {
      throw Error(ErrorKind::Unsupported, row.name, count, " parameters are more than ",
                  kMostParameters);
    }
    Bridge bridge{.row = &row, .defaults = op_defaults(row), .roles = {}};
    for (std::size_t i = 0; i < count; ++i) {
      bridge.roles.push_back(role_of(row.name, parameter_name(row.signature, i)));
    }
    bridge.elementwise = row.family == "unary" || row.family == "binary" ||
                         row.family == "affine" || row.family == "where";
    bridge.reduces = row.family == "reduce";
    bridges.push_back(std::move(bridge));
    signatures.push_back(language_signature(row.signature));
    rows.push_back({.name = row.name,
                    .section = row.family,
                    .signature = signatures.back(),
                    .help = row.help,
                    .call = call_row,
                    .data = &bridges.back()});
  }
  return rows;
}

}  // namespace tl::lang
