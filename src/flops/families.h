// The built-in formulas, one source file per family of operators. A new one is a row in its
// family's table.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "flops/formulas.h"

namespace layertrace {

struct FormulaRow {
  std::string_view name = {};  // "aten::addmm", or with its overload
  OpKind kind = OpKind::kFree;
  CostFunction cost = nullptr;  // nullptr: nothing to charge
  SlotNames arguments = {};
  unsigned per_element = 0;
  FvcoreFunction fvcore = nullptr;
};

class FormulaIndex {
 public:
  void add(std::span<const FormulaRow> rows);
  // Operators of `aten` that differ in a factor only: their names, with a space between.
  void add_names(std::string_view names, const FormulaRow& row);

  // Also for the in-place form of a name, whose "_" its row does not have. nullptr where none is.
  const FormulaRow* find(const OpSignature& signature) const;
  const FormulaRow* find(std::string_view name) const;

  // All there are, made when they are first asked for.
  static const FormulaIndex& built_in();

 private:
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name
    std::size_t operator()(std::string_view name) const noexcept {
      return std::hash<std::string_view>()(name);
    }
  };
  std::unordered_map<std::string, FormulaRow, Hash, std::equal_to<>> rows_;
};

void add_matmul_formulas(FormulaIndex& index);
void add_matmul_wrapper_formulas(FormulaIndex& index);
void add_convolution_formulas(FormulaIndex& index);
void add_attention_formulas(FormulaIndex& index);
void add_recurrent_formulas(FormulaIndex& index);
void add_elementwise_formulas(FormulaIndex& index);
void add_norm_formulas(FormulaIndex& index);
void add_pooling_formulas(FormulaIndex& index);
void add_resampling_formulas(FormulaIndex& index);
void add_optimizer_formulas(FormulaIndex& index);
void add_free_operators(FormulaIndex& index);

// ---- Formulas that several families use ----

// per_element for each element of the broadcast of all input tensors.
std::optional<OpCost> elementwise_cost(const Arguments& arguments);
// per_element for each element of slot 0; a list of tensors counts as one.
std::optional<OpCost> first_tensor_cost(const Arguments& arguments);

// fvcore counts an operator that it knows once, and so nothing that runs inside; here one that it
// knows not, but whose insides it does not see either.
inline std::optional<std::uint64_t> fvcore_none(const Arguments& /*arguments*/,
                                                const std::optional<OpCost>& /*cost*/) {
  return 0;
}
// The formula's multiply-adds.
inline std::optional<std::uint64_t> fvcore_macs(const Arguments& /*arguments*/,
                                                const std::optional<OpCost>& cost) {
  return cost ? std::optional(cost->macs()) : std::nullopt;
}

}  // namespace layertrace
