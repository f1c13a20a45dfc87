#include "lang/builtins/tensors.h"

#include <limits>

#include "lang/row_work.h"
#include "tl/ops/binary.h"
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

namespace {

// The weight as it is multiplied where it lies; nothing for one that is multiplied as a tensor.
std::optional<tl::QTensor> rows_of(const tl::Tensor& x, const Value& value) {
  if (value.is(Kind::QTensor)) {
    const tl::QTensor& w = value.qtensor();
    return w.rank() == 2 && w.location() == x.location() ? std::optional(w) : std::nullopt;
  }
  if (!value.is(Kind::Tensor)) return std::nullopt;
  const tl::Tensor& w = value.tensor();
  const bool narrow = w.dtype() == DType::F16 || w.dtype() == DType::BF16;
  const bool fits = narrow && x.dtype() == DType::F32 && w.rank() == 2 && w.is_contiguous() &&
                    w.location() == x.location() && w.count() > 0;
  if (!fits) return std::nullopt;
  const auto offset = static_cast<std::uint64_t>(w.layout().offset()) * size_of(w.dtype());
  return tl::QTensor::from_memory(w.memory().slice(offset, w.size_bytes()), *q_type_of(w.dtype()),
                                  w.shape());
}

}  // namespace

tl::Tensor times_weight(Context& context, const tl::Tensor& x, const Args& args, std::size_t weight,
                        std::optional<std::size_t> bias) {
  const auto with_bias = [&](tl::Tensor product) {
    if (!bias) return product;
    tl::Tensor more = args.tensor(context, *bias, product.dtype());
    together(context, product, more);
    return add(product, more);
  };
  if (const auto rows = rows_of(x, args[weight])) {
    if (gpu::RowQueue* queue = row_queue(context, x)) {
      const bool is_plain = bias && args[*bias].is(Kind::Tensor);
      const auto own = is_plain ? std::optional(args[*bias].tensor()) : std::nullopt;
      auto product = queue->linear(x, *rows, own);
      if (product && is_plain) return *std::move(product);
      if (product) return with_bias(*std::move(product));
    }
    return with_bias(linear(x, *rows));
  }
  tl::Tensor w = args.tensor(context, weight);
  tl::Tensor left = x;
  together(context, left, w);
  return with_bias(linear(left, w));
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
  if (all.size() == 1 && device.is_gpu() && size <= std::numeric_limits<std::uint32_t>::max()) {
    // A fill, which nobody waits for as one waits for an upload.
    const auto id = static_cast<std::uint32_t>(all[0]);
    tl::Tensor one = tl::Tensor::uninitialized(ids->shape(), DType::U32, device);
    one.memory().fill(&id, sizeof id);
    return one;
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
