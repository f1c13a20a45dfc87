// From a type of the files to the struct that says what its blocks hold.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/quant_blocks.h"
#include "tl/base/error.h"
#include "tl/quant/format.h"

namespace tl {

// Calls f(std::type_identity<quant_blocks::...>) for the type. Plain types are the caller's.
template <class F>
decltype(auto) with_blocks(QType type, F&& f) {
  namespace qb = quant_blocks;
  switch (type) {
    case QType::Q4_0:
      return f(std::type_identity<qb::Q4_0>{});
    case QType::Q4_1:
      return f(std::type_identity<qb::Q4_1>{});
    case QType::Q5_0:
      return f(std::type_identity<qb::Q5_0>{});
    case QType::Q5_1:
      return f(std::type_identity<qb::Q5_1>{});
    case QType::Q8_0:
      return f(std::type_identity<qb::Q8_0>{});
    case QType::Q8_1:
      return f(std::type_identity<qb::Q8_1>{});
    case QType::Q2_K:
      return f(std::type_identity<qb::Q2_K>{});
    case QType::Q3_K:
      return f(std::type_identity<qb::Q3_K>{});
    case QType::Q4_K:
      return f(std::type_identity<qb::Q4_K>{});
    case QType::Q5_K:
      return f(std::type_identity<qb::Q5_K>{});
    case QType::Q6_K:
      return f(std::type_identity<qb::Q6_K>{});
    case QType::Q8_K:
      return f(std::type_identity<qb::Q8_K>{});
    case QType::IQ2_XXS:
      return f(std::type_identity<qb::IQ2_XXS>{});
    case QType::IQ2_XS:
      return f(std::type_identity<qb::IQ2_XS>{});
    case QType::IQ3_XXS:
      return f(std::type_identity<qb::IQ3_XXS>{});
    case QType::IQ1_S:
      return f(std::type_identity<qb::IQ1_S>{});
    case QType::IQ4_NL:
      return f(std::type_identity<qb::IQ4_NL>{});
    case QType::IQ3_S:
      return f(std::type_identity<qb::IQ3_S>{});
    case QType::IQ2_S:
      return f(std::type_identity<qb::IQ2_S>{});
    case QType::IQ4_XS:
      return f(std::type_identity<qb::IQ4_XS>{});
    case QType::IQ1_M:
      return f(std::type_identity<qb::IQ1_M>{});
    case QType::TQ1_0:
      return f(std::type_identity<qb::TQ1_0>{});
    case QType::TQ2_0:
      return f(std::type_identity<qb::TQ2_0>{});
    case QType::MXFP4:
      return f(std::type_identity<qb::MXFP4>{});
    case QType::NVFP4:
      return f(std::type_identity<qb::NVFP4>{});
    case QType::Q1_0:
      return f(std::type_identity<qb::Q1_0>{});
    case QType::Q2_0:
      return f(std::type_identity<qb::Q2_0>{});
    default:
      throw Error(ErrorKind::BadArgument, "blocks", name(type), " has no blocks");
  }
}

}  // namespace tl
