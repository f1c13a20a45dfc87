// Element types and devices: asking and converting.
#include "lang/builtins/tensors.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

Value call_dtype(Context& context, Args& args) {
  if (args[0].is(Kind::QTensor)) return lower(name(args[0].qtensor().type()));
  return name(args.tensor(context, 0).dtype());
}

Value call_device(Context& context, Args& args) {
  if (!args.has(0)) return context.device->text();
  if (args[0].is(Kind::QTensor)) return args[0].qtensor().device().text();
  return args.tensor(context, 0).device().text();
}

Value brought(Context& context, const Args& args, const Value& x, std::size_t i) {
  const std::string& wanted = args.string(i);
  if (const auto dtype = dtype_by_name(wanted)) {
    return converted(context, join(args.name(), "()"), x, *dtype);
  }
  std::optional<Device> device;
  try {
    device = Device::parse(wanted);
  } catch (const Error& error) {
    if (error.kind != ErrorKind::BadArgument) throw;
    throw type_error(args.name(), "(): '", wanted, "' is neither a dtype nor a device");
  }
  if (x.is(Kind::QTensor)) return x.qtensor().to(*device);
  return to(to_tensor(context, join(args.name(), "()"), x), *device);
}

// ("f16"), ("cuda:0"), or both in either order.
Value call_to(Context& context, Args& args) {
  Value x = brought(context, args, args[0], 1);
  return args.has(2) ? brought(context, args, x, 2) : x;
}

Value call_quantize(Context& context, Args& args) {
  const QType type = parse_q_type(args.string(1));
  return tl::QTensor::quantize(float_tensor(context, args, 0), type);
}

Value call_dequantize(Context& context, Args& args) {
  return args.tensor(context, 0, args.has(1) ? args.dtype(1) : DType::F32);
}

// ---- devices

Value call_device_count(Context&, Args& args) {
  if (!args.has(0)) return static_cast<std::int64_t>(Device::all().size());
  const std::string& kind = args.string(0);
  for (const DeviceKind known : {DeviceKind::Cuda, DeviceKind::Rocm}) {
    if (kind == name(known)) return std::int64_t{Device::count(known)};
  }
  if (kind == "cpu") return 1;
  args.bad_value(0, "cpu, cuda or rocm");
}

Value call_devices(Context&, Args&) {
  std::vector<Value> names;
  for (const Device& device : Device::all()) names.emplace_back(device.text());
  return make<ListObject>(std::move(names));
}

Value call_device_name(Context& context, Args& args) {
  const Device device = args.has(0) ? Device::parse(args.string(0)) : context.device.get();
  return device.name();
}

Value call_set_device(Context& context, Args& args) {
  context.device = Device::parse(args.string(0));
  return {};
}

Value call_synchronize(Context& context, Args&) {
  context.device->synchronize();
  return {};
}

constexpr std::string_view kSection = "dtype";

}  // namespace

BuiltinRows dtype_builtins() {
  static const Builtin rows[] = {
      {"dtype", kSection, "(x)", "The name of a tensor's element type: \"f32\".", call_dtype},
      {"device", kSection, "(x = none)",
       "Where a tensor is, or where new ones go: \"cpu\", \"cuda:0\".", call_device},
      {"to", kSection, "(x, what, also = none)",
       "Converted to a dtype such as \"f16\", or on a device such as \"cuda:0\".", call_to},
      {"quantize", kSection, "(x, type)", "In blocks of a format such as \"q4_0\".", call_quantize},
      {"dequantize", kSection, "(x, dtype = none)", "A quantised tensor as plain numbers.",
       call_dequantize},
      {"device_count", kSection, "(kind = none)", "How many devices there are, of a kind or all.",
       call_device_count},
      {"devices", kSection, "()", "The names of all devices.", call_devices},
      {"device_name", kSection, "(device = none)", "What a device calls itself.", call_device_name},
      {"set_device", kSection, "(device)", "Where new tensors go from now on.", call_set_device},
      {"synchronize", kSection, "()", "Waits until the device has done its work.",
       call_synchronize},
  };
  return rows;
}

}  // namespace tl::lang
