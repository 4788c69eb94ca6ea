// From an operator's name to what a call of it costs.
//
// An observer looks up and binds the formula once per operator, and keeps it; a call then costs the
// formula's arithmetic alone. Binding finds the formula's arguments by their names in the schema,
// so that neither another order nor a new argument of a later PyTorch makes it read the wrong one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "flops/arguments.h"
#include "flops/op_call.h"
#include "flops/op_cost.h"

namespace layertrace {

enum class OpKind : std::uint8_t {
  kPrimitive,  // computes a contraction: charged when it runs, unless an enclosing operator was
  kWrapper,    // asks others to: charged by its own formula only if it ends with nothing charged
  kFree,       // known to compute no contraction; may cost aux_flops
  kUnknown,    // no formula: to be listed as uncounted
};

// A formula of the user's. Nothing where the call cannot be counted; so, too, if it throws.
using UserFormula = std::function<std::optional<OpCost>(const OpSignature&, OpArguments inputs)>;

using CostFunction = std::optional<OpCost> (*)(const Arguments&);
// Is given the built-in formula's cost, too, since mostly it is that in another unit.
using FvcoreFunction = std::optional<std::uint64_t> (*)(const Arguments&,
                                                        const std::optional<OpCost>&);

class BoundFormula {
 public:
  BoundFormula() = default;

  OpKind kind() const noexcept { return kind_; }

  // Nothing where the call cannot be counted: a nested or sparse tensor, shapes that do not fit,
  // weights that are packed out of sight. The caller lists it rather than count it wrong.
  std::optional<OpCost> cost(OpArguments inputs) const;

  // What fvcore's FlopCountAnalysis says of the call, in its own unit; nothing where it does not
  // know the operator and looks at those that run inside.
  std::optional<std::uint64_t> fvcore_flops(OpArguments inputs) const;
  // The same for a caller that has the call's cost.
  std::optional<std::uint64_t> fvcore_flops(OpArguments inputs,
                                            const std::optional<OpCost>& cost) const;

  // Neither charges anything nor is listed: the caller may leave its calls out.
  bool is_silent() const noexcept {
    return kind_ == OpKind::kFree && cost_ == nullptr && user_ == nullptr && fvcore_ == nullptr;
  }

 private:
  friend class FormulaTable;
  std::optional<OpCost> built_in_cost(OpArguments inputs) const;

  struct User {
    UserFormula formula;
    OpSignature signature;
  };

  OpKind kind_ = OpKind::kUnknown;
  unsigned per_element_ = 0;
  Slots slots_{};
  CostFunction cost_ = nullptr;
  FvcoreFunction fvcore_ = nullptr;
  std::shared_ptr<const User> user_;  // takes cost_'s place
};

struct AddedFormula {
  UserFormula formula;
  OpKind kind = OpKind::kPrimitive;
};

// A table of its own adds to the process's formulas, which add to the built-in ones; of two for one
// operator the one added closest is bound. Not to be changed while others bind.
class FormulaTable {
 public:
  // By the operator's name, or its name and overload ("aten::max.dim"), which goes first.
  void add(std::string op_name, UserFormula formula, OpKind kind = OpKind::kPrimitive);

  bool remove(const std::string& op_name) { return added_.erase(op_name) != 0; }

  BoundFormula bind(const OpSignature& signature) const;

  // Of those added to this table alone; nullptr where there is none.
  const AddedFormula* find_added(const OpSignature& signature) const;

 private:
  std::unordered_map<std::string, AddedFormula> added_;
};

// The same for all tables of this process. Thread-safe. Formulas that are already bound stay as
// they are; the revision tells an observer that keeps them to bind again.
void add_process_formula(std::string op_name, UserFormula formula,
                         OpKind kind = OpKind::kPrimitive);
// False where there is none of that name.
bool remove_process_formula(const std::string& op_name);
std::uint64_t process_formula_revision() noexcept;

}  // namespace layertrace
