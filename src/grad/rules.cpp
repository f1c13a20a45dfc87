#include "grad/rules.h"

#include <unordered_map>

namespace tl::grad {

const Rule* find_rule(std::string_view op) {
  static const auto all_rules = [] {
    std::unordered_map<std::string_view, const Rule*> all;
    for (const auto rules :
         {attention_rules(), binary_rules(), choice_rules(),  conv_rules(),   glu_rules(),
          indexing_rules(),  join_rules(),   loss_rules(),    matmul_rules(), move_rules(),
          norm_rules(),      pool_rules(),   quant_rules(),   reduce_rules(), resize_rules(),
          rope_rules(),      scan_rules(),   softmax_rules(), unary_rules(),  view_rules()}) {
      for (const Rule& rule : rules) all.emplace(rule.op, &rule);
    }
    return all;
  }();
  const auto at = all_rules.find(op);
  return at == all_rules.end() ? nullptr : at->second;
}

}  // namespace tl::grad
