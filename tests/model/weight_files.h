// A small model file for the tests of weights: layers with a matrix in blocks, a plain one and a
// vector, and bytes that tell tensors apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/gguf_files.h"
#include "tl/model/gguf_writer.h"

namespace tl::test {

struct ModelShape {
  std::size_t layers = 3;
  std::int64_t rows = 24;
  std::int64_t columns = 256;
};

// Writes it and gives the first path. The bytes are made from the shapes alone.
inline std::string write_model(const std::string& path, const ModelShape& shape,
                               const GgufWriter::Options& options = {}) {
  GgufWriter writer(options);
  writer.add("general.architecture", "llama");
  std::vector<std::vector<std::byte>> keep;
  keep.reserve(3 * shape.layers + 2);
  const auto add = [&](const std::string& name, const Shape& dims, QType type) {
    const std::int64_t columns = dims[dims.size() - 1];
    std::int64_t rows = 1;
    for (int d = 0; d + 1 < dims.size(); ++d) rows *= dims[d];
    keep.push_back(
        pattern(q_bytes("test", type, rows, columns), static_cast<unsigned>(11 * keep.size())));
    writer.add_tensor(name, dims, type, keep.back());
  };
  add("token_embd.weight", {shape.rows, shape.columns}, QType::Q4_K);
  for (std::size_t i = 0; i < shape.layers; ++i) {
    const std::string layer = join("blk.", i, '.');
    add(layer + "attn_norm.weight", {shape.columns}, QType::F32);
    add(layer + "attn_q.weight", {shape.rows, shape.columns}, QType::Q8_0);
    add(layer + "ffn_up.weight", {shape.rows, shape.columns}, QType::F16);
  }
  add("output_norm.weight", {shape.columns}, QType::F32);
  return writer.write(path).front();
}

}  // namespace tl::test
