// TensorBuffer: room for tensors that is taken at once. Each tensor has memory of its own, cut from
// that room; the buffer keeps it and hands it out again when the last tensor in it is gone.
#include <algorithm>

#include "lang/builtins/tensors.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

class TensorBuffer final : public HostObject {
 public:
  static constexpr std::string_view kTypeName = "TensorBuffer";

  TensorBuffer(std::uint64_t capacity, const Device& device)
      : capacity_(capacity), device_(device) {
    const std::uint64_t sizes[] = {capacity};
    if (capacity > 0) device_.reserve(sizes);
  }

  std::string_view type_name() const override { return kTypeName; }
  std::string text() const override {
    constexpr std::uint64_t kMebi = 1 << 20;
    return join("TensorBuffer(capacity=", capacity_ / kMebi, "MB, used=", used() / kMebi, "MB)");
  }
  Value property(Context& context, std::string_view name) const override {
    if (name == "capacity") return static_cast<std::int64_t>(capacity_);
    if (name == "used") return static_cast<std::int64_t>(used());
    return HostObject::property(context, name);
  }

  bool method(Context& /*context*/, std::string_view name, Args& args, Value& result) override {
    if (name == "zeros" || name == "ones") {
      expect_count(args, name, 1, 2);
      const DType dtype = args.size() > 1 ? args.dtype(1) : DType::F16;
      result = filled(shape_of(args), dtype, name == "ones" ? 1 : 0);
    } else if (name == "alloc") {
      expect_count(args, name, 3, 3);
      prepare(shape_of(args), args.integer(1), args.integer(2));
      result = Value();
    } else {
      return false;
    }
    return true;
  }

 private:
  struct Slot {
    RawMemory memory;
    bool kept = false;  // asked for with alloc()
    bool is_free() const noexcept { return memory.use_count() <= 1; }
  };

  static void expect_count(const Args& args, std::string_view name, std::size_t least,
                           std::size_t most) {
    if (args.size() >= least && args.size() <= most) return;
    throw type_error(name, "() expects ", least,
                     most > least ? join(" or ", most, " arguments") : " arguments", ", got ",
                     args.size());
  }
  static Shape shape_of(const Args& args) {
    const Shape shape = args.dims(0);
    element_count("TensorBuffer", shape);  // throws for negative and impossible sizes
    return shape;
  }

  std::uint64_t used() const noexcept {
    std::uint64_t bytes = 0;
    for (const Slot& slot : slots_) bytes += slot.memory.bytes();
    return bytes;
  }

  void expect_room(std::uint64_t bytes) {
    if (bytes <= capacity_ - used()) return;
    std::erase_if(slots_, [](const Slot& slot) { return slot.is_free() && !slot.kept; });
    if (const std::uint64_t available = capacity_ - used(); bytes > available) {
      throw RuntimeError(join("Tensor error: Buffer exhausted: requested ", bytes,
                              " bytes, available ", available, " bytes"));
    }
  }

  Slot& add(std::uint64_t bytes, bool kept) {
    expect_room(bytes);
    slots_.push_back({RawMemory(device_, bytes), kept});
    return slots_.back();
  }

  void prepare(const Shape& shape, std::int64_t count, std::int64_t element_bytes) {
    if (count < 0 || element_bytes <= 0) {
      throw type_error("alloc() expects a count and a size of elements, got ", count, " and ",
                       element_bytes);
    }
    const auto elements = static_cast<std::uint64_t>(element_count("TensorBuffer", shape));
    const std::uint64_t bytes =
        checked_multiply("TensorBuffer", elements, static_cast<std::uint64_t>(element_bytes));
    expect_room(checked_multiply("TensorBuffer", bytes, static_cast<std::uint64_t>(count)));
    for (std::int64_t i = 0; bytes > 0 && i < count; ++i) add(bytes, true);
  }

  tl::Tensor filled(const Shape& shape, DType dtype, int number) {
    const auto elements = static_cast<std::uint64_t>(element_count("TensorBuffer", shape));
    const std::uint64_t bytes = checked_multiply("TensorBuffer", elements, size_of(dtype));
    if (bytes == 0) return tl::Tensor::zeros(shape, dtype, device_);
    auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) {
      return s.is_free() && s.memory.bytes() == bytes;
    });
    Slot& chosen = slot != slots_.end() ? *slot : add(bytes, false);
    // The one handle while it is filled, so that it is written where it lies.
    tl::Tensor x = tl::Tensor::from_memory(std::move(chosen.memory), dtype, Layout(shape));
    fill(x, number);
    chosen.memory = x.memory();
    return x;
  }

  std::uint64_t capacity_;
  Device device_;
  std::vector<Slot> slots_;
};

Value call_new(Context& context, Args& args) {
  const std::int64_t bytes = args.integer(0);
  if (bytes < 0) args.bad_value(0, "a number of bytes");
  return make<TensorBuffer>(static_cast<std::uint64_t>(bytes), context.device);
}

}  // namespace

BuiltinRows buffer_builtins() {
  static const Builtin rows[] = {
      {"new_tensor_buffer", "creation", "(bytes)",
       "Room for tensors, taken at once: its methods are zeros, ones and alloc.", call_new},
  };
  return rows;
}

}  // namespace tl::lang
