// tl_op: every op of the table by its name, and views, which are no ops but are asked for the same
// way.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/tensors.h"
#include "tl/ops/table.h"

namespace tl::capi {

namespace {

Tensor transpose_view(const Tensor& x, std::int64_t a, std::int64_t b) { return x.transpose(a, b); }
Tensor permute_view(const Tensor& x, const Dims& order) { return x.permute(order); }
Tensor narrow_view(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length) {
  return x.narrow(dim, start, length);
}
Tensor slice_view(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t end,
                  std::int64_t step) {
  return x.slice(dim, start, end, step);
}
Tensor select_view(const Tensor& x, std::int64_t dim, std::int64_t index) {
  return x.get_on_dim(dim, index);
}
Tensor squeeze_view(const Tensor& x, std::int64_t dim) { return x.squeeze(dim); }
Tensor unsqueeze_view(const Tensor& x, std::int64_t dim) { return x.unsqueeze(dim); }
Tensor broadcast_view(const Tensor& x, const Dims& shape) { return x.broadcast_as(shape); }
Tensor other_view(const Tensor& x, const Dims& shape) { return x.view(shape); }

std::span<const OpRow> view_rows() {
  static const std::array rows = {
      OpRow{"transpose", "view", "(x, a, b)", kAnySet, "Two dimensions exchanged.",
            call<&transpose_view>},
      OpRow{"permute", "view", "(x, order)", kAnySet, "Dimensions in another order.",
            call<&permute_view>},
      OpRow{"narrow", "view", "(x, dim, start, length)", kAnySet, "A part of a dimension.",
            call<&narrow_view>},
      OpRow{"slice", "view", "(x, dim, start, end, step = 1)", kAnySet,
            "Every step-th index of a part of a dimension.", call<&slice_view>},
      OpRow{"select", "view", "(x, dim, index)", kAnySet, "One index of a dimension, which goes.",
            call<&select_view>},
      OpRow{"squeeze", "view", "(x, dim)", kAnySet, "Without a dimension of size 1.",
            call<&squeeze_view>},
      OpRow{"unsqueeze", "view", "(x, dim)", kAnySet, "With a new dimension of size 1.",
            call<&unsqueeze_view>},
      OpRow{"broadcast_as", "view", "(x, shape)", kAnySet, "Repeated to a shape, without a copy.",
            call<&broadcast_view>},
      OpRow{"view", "view", "(x, shape)", kAnySet, "Another shape where no copy is needed.",
            call<&other_view>}};
  return rows;
}

const OpRow* find_view(std::string_view name) {
  for (const OpRow& row : view_rows()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::vector<Tensor> call_view(const OpRow& row, std::vector<OpValue> arguments) {
  const auto defaults = op_defaults(row);
  if (arguments.size() > defaults.size()) {
    throw Error(ErrorKind::BadArgument, row.name, arguments.size(), " arguments for ", row.name,
                row.signature);
  }
  for (std::size_t i = arguments.size(); i < defaults.size(); ++i) {
    if (!defaults[i]) {
      throw Error(ErrorKind::BadArgument, row.name, "argument ", i + 1, " is missing in ", row.name,
                  row.signature);
    }
    arguments.push_back(*defaults[i]);
  }
  return row.call(row.name, arguments);
}

OpValue value_of(std::string_view op, const tl_arg& argument) {
  switch (argument.kind) {
    case TL_ARG_NONE:
      return NoValue{};
    case TL_ARG_TENSOR:
      return *tensors().get(op, argument.value.tensor);
    case TL_ARG_TENSORS: {
      std::vector<Tensor> list;
      if (argument.count > 0) expect(argument.value.tensors, op, "a list of tensors");
      for (std::size_t i = 0; i < argument.count; ++i) {
        list.push_back(*tensors().get(op, argument.value.tensors[i]));
      }
      return list;
    }
    case TL_ARG_INTEGER:
      return Scalar(argument.value.integer);
    case TL_ARG_NUMBER:
      return Scalar(argument.value.number);
    case TL_ARG_BOOLEAN:
      return argument.value.integer != 0;
    case TL_ARG_INTEGERS:
      if (argument.count > 0) expect(argument.value.integers, op, "a list of integers");
      return Dims(std::span(argument.value.integers, argument.count));
    case TL_ARG_TEXT:
      return std::string(expect(argument.value.text, op, "a text"));
    case TL_ARG_DTYPE:
      return dtype_of_c(op, argument.value.integer);
    case TL_ARG_DEVICE:
      return device_of_c(op, argument.value.device);
    default:
      throw Error(ErrorKind::BadArgument, op, "there is no kind of argument ", argument.kind);
  }
}

// Handles for all of them, or for none.
void put_all(std::string_view op, std::vector<Tensor> made, tl_tensor** results,
             std::size_t capacity) {
  if (made.size() > capacity) {
    throw Error(ErrorKind::SizeMismatch, op, "it gives ", made.size(),
                " tensors, and there is room for ", capacity);
  }
  if (!made.empty()) expect(results, op, "results");
  std::vector<tl_tensor*> handles;
  handles.reserve(made.size());
  try {
    for (Tensor& each : made) handles.push_back(tensors().put(std::move(each)));
  } catch (...) {
    for (const tl_tensor* handle : handles) tensors().drop(op, handle);
    throw;
  }
  std::copy(handles.begin(), handles.end(), results);
}

}  // namespace

}  // namespace tl::capi

namespace capi = tl::capi;

tl_status tl_op(const char* name, const tl_arg* arguments, size_t argument_count,
                tl_tensor** results, size_t capacity, size_t* count) {
  return capi::guarded([&] {
    const std::string op = capi::expect(name, "tl_op", "name");
    if (argument_count > 0) capi::expect(arguments, op, "arguments");
    std::vector<tl::OpValue> values;
    for (std::size_t i = 0; i < argument_count; ++i) {
      values.push_back(capi::value_of(op, arguments[i]));
    }
    const tl::OpRow* view = capi::find_view(op);
    std::vector<tl::Tensor> made =
        view != nullptr ? capi::call_view(*view, std::move(values)) : tl::call_op(op, values);
    const std::size_t number = made.size();
    capi::put_all(op, std::move(made), results, capacity);
    if (count != nullptr) *count = number;
  });
}

tl_status tl_op_count(size_t* count) {
  return capi::guarded([&] {
    *capi::expect(count, "tl_op_count", "count") = tl::op_table().size() + capi::view_rows().size();
  });
}

// Names, signatures and help are literals, which a zero ends.
tl_status tl_op_info(size_t place, const char** name, const char** signature, const char** help) {
  return capi::guarded([&] {
    const auto ops = tl::op_table();
    const auto views = capi::view_rows();
    if (place >= ops.size() + views.size()) {
      throw tl::Error(tl::ErrorKind::BadArgument, "tl_op_info", "there is no op ", place,
                      "; there are ", ops.size() + views.size());
    }
    const tl::OpRow& row = place < ops.size() ? ops[place] : views[place - ops.size()];
    if (name != nullptr) *name = row.name.data();
    if (signature != nullptr) *signature = row.signature.data();
    if (help != nullptr) *help = row.help.data();
  });
}
