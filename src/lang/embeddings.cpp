#include "lang/embeddings.h"

#include <algorithm>
#include <cmath>

#include "lang/knowledge.h"
#include "lang/training.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/join.h"
#include "tl/ops/random.h"

namespace tl::lang {

std::vector<std::string> embedding_rows(Context& context, const EmbeddingInfo& e) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  if (e.grows && e.type.empty()) return k.all_entities().names();
  if (!e.type.empty()) return k.entities(e.type)->names();
  return e.members;
}

std::int64_t embedding_row(Context& context, const EmbeddingInfo& e, const std::string& name) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  if (e.grows && e.type.empty()) return k.all_entities().place(name);
  if (!e.type.empty()) return k.entities(e.type)->place(name);
  const auto at = std::find(e.members.begin(), e.members.end(), name);
  return at == e.members.end() ? -1 : at - e.members.begin();
}

tl::Tensor initial_embedding(Context& context, ast::Init init, const Shape& shape) {
  const auto rows = static_cast<double>(shape[0]);
  const double bound = std::sqrt(6.0 / (rows + static_cast<double>(shape[shape.size() - 1])));
  switch (init) {
    case ast::Init::Random:
      return rand_uniform(-0.1, 0.1, shape, DType::F32, context.device);
    case ast::Init::Xavier:
      return rand_uniform(-bound, bound, shape, DType::F32, context.device);
    case ast::Init::He:
      return rand_normal(0, std::sqrt(2.0 / rows), shape, DType::F32, context.device);
    case ast::Init::Zeros:
      return tl::Tensor::zeros(shape, DType::F32, context.device);
    case ast::Init::Ones:
      break;
  }
  return ones(shape, DType::F32, context.device);
}

Value grown_embedding(Context& context, ast::Init init, const Value& matrix, std::int64_t rows) {
  if (!matrix.is(Kind::Tensor)) return matrix;
  const tl::Tensor& x = matrix.tensor();
  const std::int64_t had = x.shape()[0];
  if (rows <= had) return matrix;
  const NoHistory none;
  const tl::Tensor more = to_dtype(
      to(initial_embedding(context, init, {rows - had, x.shape()[1]}), x.device()), x.dtype());
  Value grown = cat({x, more}, 0);
  if (!is_parameter(matrix)) return grown;
  Learning::assign(context, matrix, grown);
  return matrix;
}

}  // namespace tl::lang
