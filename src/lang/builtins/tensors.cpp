#include "lang/builtins/tensors.h"

#include "tl/ops/copy.h"
#include "tl/ops/matmul.h"

namespace tl::lang {

tl::Tensor float_tensor(const Context& context, const Args& args, std::size_t i) {
  tl::Tensor x = args.tensor(context, i);
  return is_float(x.dtype()) ? x : to_dtype(x, DType::F32);
}

tl::Tensor number_tensor(const Context& context, const Args& args, std::size_t i) {
  tl::Tensor x = args.tensor(context, i);
  return x.dtype() != DType::Bool ? x : to_dtype(x, DType::F32);
}

std::vector<tl::Tensor> tensor_list(const Context& context, const Args& args, const Value& list) {
  std::vector<tl::Tensor> parts;
  const std::string who = join(args.name(), "()");
  for (std::size_t i = 0; i < list_size(list); ++i) {
    parts.push_back(to_tensor(context, who, list_item(list, i)));
  }
  std::vector<tl::Tensor*> all;
  for (tl::Tensor& part : parts) all.push_back(&part);
  bring_together(context, all);
  return parts;
}

tl::Tensor times_weight(const Context& context, const tl::Tensor& x, const Args& args,
                        std::size_t weight) {
  const Value& value = args[weight];
  if (value.is(Kind::QTensor)) {
    const tl::QTensor& w = value.qtensor();
    if (w.rank() == 2 && w.location() == x.location()) return linear(x, w);
  }
  tl::Tensor w = args.tensor(context, weight);
  const bool narrow = w.dtype() == DType::F16 || w.dtype() == DType::BF16;
  if (narrow && x.dtype() == DType::F32 && w.rank() == 2 && w.is_contiguous() &&
      w.location() == x.location() && w.count() > 0) {
    const std::uint64_t bytes = w.size_bytes();
    const auto offset = static_cast<std::uint64_t>(w.layout().offset()) * size_of(w.dtype());
    return linear(x, tl::QTensor::from_memory(w.memory().slice(offset, bytes),
                                              *q_type_of(w.dtype()), w.shape()));
  }
  tl::Tensor left = x;
  together(context, left, w);
  return linear(left, w);
}

tl::Tensor row_ids(const Context& context, const Args& args, std::size_t i, std::int64_t size,
                   const Device& device) {
  const Value& value = args[i];
  if (value.is_tensor()) return to(index_tensor(context, join(args.name(), "()"), value), device);
  std::optional<tl::Tensor> ids = list_tensor(value, DType::I64);
  if (!ids) args.bad(i, "indices");
  std::vector<std::int64_t> all = ids->to_vector<std::int64_t>();
  for (const std::int64_t id : all) {
    if (id < 0 || id >= size) {
      throw RuntimeError(join("Index ", id, " out of bounds for length ", size));
    }
  }
  return tl::Tensor::from(all, ids->shape(), device);
}

Value dims_value(const Dims& dims) {
  std::vector<Value> values;
  values.reserve(static_cast<std::size_t>(dims.size()));
  for (const std::int64_t size : dims) values.emplace_back(size);
  return make<ListObject>(std::move(values));
}

}  // namespace tl::lang
