// Keys and values of each layer for transformers that a program writes itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lang/builtin.h"
#include "lang/value.h"
#include "model/layered_cache.h"

namespace tl::lang {

// Rows that grow: memory is taken for twice as many when there is no room.
class RowBuffer {
 public:
  bool empty() const noexcept { return rows_ == 0; }
  void set(const tl::Tensor& rows);
  // Rows of the same dtype and row shape: first room for them, which may fail, then they.
  void make_room(const tl::Tensor& rows);
  void add(const tl::Tensor& rows);
  tl::Tensor view() const;  // (rows, ...)

 private:
  tl::Tensor memory_;  // (capacity, ...)
  std::int64_t rows_ = 0;
};

struct KVCacheObject : HostObject {
  static constexpr std::string_view kTypeName = "KVCache";
  struct Layer {
    RowBuffer keys, values;
    void append(const tl::Tensor& more_keys, const tl::Tensor& more_values);
  };

  KVCacheObject(std::size_t layer_count, DType kept) : layers(layer_count), dtype(kept) {}

  std::string_view type_name() const override { return kTypeName; }
  std::string text() const override;
  std::int64_t size() const override { return static_cast<std::int64_t>(layers.size()); }
  bool method(Context& context, std::string_view name, Args& args, Value& result) override;

  Layer& layer(std::int64_t number);
  // Whether cached_attention() keeps that layer's rows, in blocks and not in its buffers.
  bool is_in_blocks(std::int64_t number) const;
  // The rows of a layer. Throws where there are none.
  tl::Tensor keys(std::int64_t number);
  tl::Tensor values(std::int64_t number);
  // From now on the layer's rows are in its buffers.
  void leave_blocks(std::int64_t number);

  std::vector<Layer> layers;
  std::shared_ptr<model::LayeredCache> blocks;
  DType dtype;
};

}  // namespace tl::lang
