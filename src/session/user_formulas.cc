// Formulas of the user's: what a call looks like from outside, and from inside.
#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <layertrace/layertrace.h>

#include "flops/formulas.h"
#include "session/class_formulas.h"

namespace layertrace {
namespace {

std::vector<std::int64_t> sizes_of(const TensorShape& tensor) {
  return {tensor.sizes.begin(), tensor.sizes.end()};
}

FormulaArgument as_argument(std::string name, const OpArgument& from) {
  FormulaArgument argument;
  argument.name = std::move(name);
  if (const auto* tensor = std::get_if<TensorShape>(&from)) {
    argument.shapes.push_back(sizes_of(*tensor));
  } else if (const auto* tensors = std::get_if<std::span<const TensorShape>>(&from)) {
    for (const TensorShape& each : *tensors) argument.shapes.push_back(sizes_of(each));
  } else if (const auto* list = std::get_if<std::span<const std::int64_t>>(&from)) {
    argument.integers.assign(list->begin(), list->end());
  } else if (const auto* whole = std::get_if<std::int64_t>(&from)) {
    argument.integers.push_back(*whole);
    argument.number = static_cast<double>(*whole);
  } else if (const auto* real = std::get_if<double>(&from)) {
    argument.number = *real;
  } else if (const auto* flag = std::get_if<bool>(&from)) {
    argument.integers.push_back(*flag ? 1 : 0);
  }
  return argument;
}

OperatorCall as_call(const OpSignature& signature, OpArguments inputs) {
  OperatorCall call{.name = signature.name, .arguments = {}};
  for (std::size_t i = 0; i < inputs.size() && i < signature.arguments.size(); ++i)
    call.arguments.push_back(as_argument(signature.arguments[i], inputs[i]));
  return call;
}

// The other way round, for tests: the shapes stay the call's.
OpArgument from_argument(const FormulaArgument& argument,
                         std::deque<std::vector<TensorShape>>& lists) {
  constexpr std::uint8_t kFloatBytes = 4;
  const auto shape = [](const std::vector<std::int64_t>& sizes) {
    return TensorShape{.sizes = sizes, .element_bytes = kFloatBytes};
  };
  if (argument.shapes.size() == 1) return shape(argument.shapes[0]);
  if (!argument.shapes.empty()) {
    auto& list = lists.emplace_back();
    for (const auto& sizes : argument.shapes) list.push_back(shape(sizes));
    return std::span<const TensorShape>(list);
  }
  if (argument.number && argument.integers.empty()) return *argument.number;
  if (argument.integers.size() == 1 && argument.number) return argument.integers[0];
  if (!argument.integers.empty()) return std::span<const std::int64_t>(argument.integers);
  return {};
}

// The process's, to be put back where a session's was in their place.
struct KnownFormulasOfProcess {
  std::mutex mutex;
  std::unordered_map<std::string, Formula> by_op;
};
KnownFormulasOfProcess& formulas_of_process() {
  static auto* instance = new KnownFormulasOfProcess;  // never destroyed: a session may end late
  return *instance;
}

}  // namespace

const FormulaArgument* OperatorCall::find(std::string_view argument) const noexcept {
  const auto found = std::ranges::find(arguments, argument, &FormulaArgument::name);
  return found != arguments.end() ? &*found : nullptr;
}

Result<void> set_formula(const std::string& op, Formula formula) {
  const std::string tried = "cannot add a formula for \"" + op + "\"";
  if (op.find("::") == std::string::npos)
    return Error{tried, "it is no operator's name", "Name it with its library: aten::addmm"};
  if (!formula) return Error{tried, "the formula is empty", "Give a function"};
  add_process_formula(op,
                      [formula = std::move(formula)](const OpSignature& signature,
                                                     OpArguments inputs) -> std::optional<OpCost> {
                        const auto flops = formula(as_call(signature, inputs));
                        if (!flops) return std::nullopt;
                        return OpCost{.flops = *flops, .aux_flops = 0, .flops_causal = *flops};
                      });
  return {};
}

Result<void> add_formula(const std::string& op, Formula formula) {
  if (auto set = set_formula(op, formula); !set) return set;
  KnownFormulasOfProcess& known = formulas_of_process();
  const std::lock_guard lock(known.mutex);
  known.by_op.insert_or_assign(op, std::move(formula));
  return {};
}

bool remove_formula(const std::string& op) {
  KnownFormulasOfProcess& known = formulas_of_process();
  const std::lock_guard lock(known.mutex);
  known.by_op.erase(op);
  return remove_process_formula(op);
}

void restore_formula(const std::string& op) {
  KnownFormulasOfProcess& known = formulas_of_process();
  const std::lock_guard lock(known.mutex);
  const auto found = known.by_op.find(op);
  if (found == known.by_op.end() || !set_formula(op, found->second)) remove_process_formula(op);
}

std::optional<std::uint64_t> count_call(const OperatorCall& call) {
  const std::size_t dot = call.name.find('.');
  OpSignature signature{.name = call.name.substr(0, dot),
                        .overload = dot == std::string::npos ? "" : call.name.substr(dot + 1),
                        .arguments = {}};
  std::deque<std::vector<TensorShape>> lists;
  std::vector<OpArgument> inputs;
  for (const FormulaArgument& argument : call.arguments) {
    signature.arguments.push_back(argument.name);
    inputs.push_back(from_argument(argument, lists));
  }
  const BoundFormula formula = FormulaTable().bind(signature);
  if (formula.kind() == OpKind::kUnknown) return std::nullopt;
  const auto cost = formula.cost(inputs);
  return cost ? std::optional(cost->flops) : std::nullopt;
}

}  // namespace layertrace
