#include "lang/builtins/operands.h"

#include <algorithm>

#include "lang/builtins/library.h"
#include "lang/builtins/tensors.h"
#include "lang/convert.h"
#include "tl/ops/copy.h"
#include "tl/ops/reduce.h"

namespace tl::lang {

bool is_plain_number(const Value& value) noexcept {
  return value.is_number() || value.is(Kind::Bool);
}

bool broadcast_together(const Shape& a, const Shape& b) noexcept {
  for (int d = 1; d <= std::min(a.size(), b.size()); ++d) {
    const std::int64_t x = a[a.size() - d];
    const std::int64_t y = b[b.size() - d];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

Operands::Operands(const Context& context, const Args& args,
                   std::initializer_list<std::size_t> places)
    : args_(&args),
      places_(places),
      numbers_(std::all_of(places.begin(), places.end(),
                           [&](std::size_t i) { return is_plain_number(args[i]); })) {
  expect_tensors();
  if (numbers_) {
    read_numbers();
  } else {
    read_tensors(context);
  }
}

void Operands::expect_tensors() const {
  for (const std::size_t i : places_) {
    const Value& value = (*args_)[i];
    if (!is_plain_number(value) && !value.is_tensor() && !is_list_like(value)) {
      args_->bad(i, "a tensor");
    }
  }
}

void Operands::read_numbers() {
  for (const std::size_t i : places_) tensors_.push_back(tl::Tensor::from({args_->real(i)}, {}));
}

// Tensors first: what follows them has to know where they are.
void Operands::read_tensors(const Context& context) {
  const auto follows = [&](std::size_t i) {
    return is_plain_number((*args_)[i]) || is_number_list((*args_)[i]);
  };
  std::vector<tl::Tensor> leaders;
  for (const std::size_t i : places_) {
    if (!follows(i)) leaders.push_back(args_->tensor(context, i));
  }
  std::vector<tl::Tensor*> all;
  for (tl::Tensor& leader : leaders) all.push_back(&leader);
  bring_together(context, all);
  const bool floats = !leaders.empty() && is_float(leaders[0].dtype());
  const DType dtype = floats ? leaders[0].dtype() : DType::F32;
  const Device device = leaders.empty() ? context.device.get() : leaders[0].device();
  auto leader = leaders.begin();
  for (const std::size_t i : places_) {
    tensors_.push_back(follows(i) ? to(follower(context, i, dtype), device)
                                  : to_dtype(*leader++, dtype));
  }
}

tl::Tensor Operands::follower(const Context& context, std::size_t place, DType dtype) const {
  const Value& value = (*args_)[place];
  // Straight to where it is wanted, and not by way of the program's own device.
  if (auto list = list_tensor(value, dtype)) return *std::move(list);
  return args_->tensor(context, place, dtype);  // says what is wrong with it
}

void Operands::mismatch(std::string_view why) const {
  std::string message = join("Tensor error: Shape mismatch: ", args_->name(), "(): ");
  for (std::size_t k = 0; k < places_.size(); ++k) {
    if (k > 0) message += ", ";
    message +=
        join(args_->builtin().parameters[places_[k]].name, " ", bracketed(tensors_[k].shape()));
  }
  throw RuntimeError(join(message, "; ", why));
}

Shape Operands::common_shape(bool vectors) const {
  Shape common;
  for (const tl::Tensor& x : tensors_) {
    const Shape& shape = x.shape();
    if (vectors && !common.empty() && !shape.empty() && common.back() != shape.back()) {
      mismatch("vectors need the same length");
    }
    if (!broadcast_together(common, shape)) mismatch("the sizes do not broadcast");
    common = broadcast_shapes(args_->name(), common, shape);
  }
  return common;
}

Value Operands::result(tl::Tensor x) const {
  if (numbers_) return from_tensor_item(x);
  return x;
}

void check_ids(const tl::Tensor& ids, std::int64_t size) {
  if (ids.location() != Device::cpu().location() || ids.empty()) return;
  for (const tl::Tensor& extreme : {min_all(ids), max_all(ids)}) {
    const std::int64_t id = extreme.item().integer();
    if (id >= 0 && id < size) continue;
    throw RuntimeError(join("Index ", id, " out of bounds for length ", size));
  }
}

tl::Tensor checked_ids(const Context& context, const Args& args, std::size_t i, std::int64_t size,
                       const Device& device) {
  if (!is_plain_number(args[i]) && !is_tensor_like(args[i])) args.bad(i, "indices");
  if (args[i].is(Kind::Tensor)) {
    const tl::Tensor ids = index_tensor(context, join(args.name(), "()"), args[i]);
    check_ids(ids, size);
    return to(ids, device);
  }
  return row_ids(context, args, i, size, device);
}

}  // namespace tl::lang
