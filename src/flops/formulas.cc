#include "flops/formulas.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "flops/families.h"

namespace layertrace {
namespace {

struct ProcessFormulas {
  std::mutex mutex;
  FormulaTable table;
  std::atomic<std::uint64_t> revision{0};
};

// Never destroyed: an observer may still bind while the process exits.
ProcessFormulas& process_formulas() {
  static auto* const formulas = [] {
    // A forked child must not find them locked by a thread that it does not have.
    pthread_atfork([] { process_formulas().mutex.lock(); },
                   [] { process_formulas().mutex.unlock(); },
                   [] { process_formulas().mutex.unlock(); });
    return new ProcessFormulas;
  }();
  return *formulas;
}

std::string with_overload(std::string_view name, std::string_view overload) {
  return std::string(name).append(".").append(overload);
}

// The place of an argument that may have several names, or kNoArgument.
std::int8_t find_argument(const OpSignature& signature, std::string_view names) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find('|'));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const auto found = std::find(signature.arguments.begin(), signature.arguments.end(), name);
    const auto index = found - signature.arguments.begin();
    if (found != signature.arguments.end() && index <= INT8_MAX) {
      return static_cast<std::int8_t>(index);
    }
  }
  return kNoArgument;
}

// A row of its own, or for an operator over lists of tensors the row of what it does to each.
std::optional<FormulaRow> find_built_in(const OpSignature& signature) {
  const FormulaIndex& index = FormulaIndex::built_in();
  if (const FormulaRow* row = index.find(signature)) return *row;
  constexpr std::string_view kLists = "aten::_foreach_";
  if (!signature.name.starts_with(kLists)) return {};
  std::string each = "aten::" + signature.name.substr(kLists.size());
  if (each.ends_with('_')) each.pop_back();
  const FormulaRow* row = index.find(each);
  if (row == nullptr || row->kind != OpKind::kFree) return {};
  return FormulaRow{.name = row->name,
                    .cost = row->per_element != 0 ? first_tensor_cost : nullptr,
                    .arguments = {"self"},
                    .per_element = row->per_element};
}

}  // namespace

std::optional<OpCost> BoundFormula::cost(OpArguments inputs) const {
  if (user_ != nullptr) {
    try {
      return user_->formula(user_->signature, inputs);
    } catch (...) {
      return {};  // the program that is observed goes on
    }
  }
  return built_in_cost(inputs);
}

std::optional<OpCost> BoundFormula::built_in_cost(OpArguments inputs) const {
  if (cost_ == nullptr) return kind_ == OpKind::kFree ? std::optional(OpCost()) : std::nullopt;
  return cost_(Arguments(inputs, slots_, per_element_));
}

std::optional<std::uint64_t> BoundFormula::fvcore_flops(OpArguments inputs) const {
  if (fvcore_ == nullptr) return {};
  return fvcore_(Arguments(inputs, slots_, per_element_), built_in_cost(inputs));
}

std::optional<std::uint64_t> BoundFormula::fvcore_flops(OpArguments inputs,
                                                        const std::optional<OpCost>& cost) const {
  if (fvcore_ == nullptr) return {};
  if (user_ != nullptr) return fvcore_flops(inputs);  // that cost is the user's
  return fvcore_(Arguments(inputs, slots_, per_element_), cost);
}

void FormulaTable::add(std::string op_name, UserFormula formula, OpKind kind) {
  added_.insert_or_assign(std::move(op_name),
                          AddedFormula{.formula = std::move(formula), .kind = kind});
}

const AddedFormula* FormulaTable::find_added(const OpSignature& signature) const {
  if (added_.empty()) return nullptr;
  auto found = added_.find(with_overload(signature.name, signature.overload));
  if (found == added_.end()) found = added_.find(signature.name);
  return found != added_.end() ? &found->second : nullptr;
}

BoundFormula FormulaTable::bind(const OpSignature& signature) const {
  BoundFormula bound;
  if (const auto row = find_built_in(signature)) {
    bound.kind_ = row->kind;
    bound.per_element_ = row->per_element;
    bound.cost_ = row->cost;
    bound.fvcore_ = row->fvcore;
    for (std::size_t i = 0; i < kMostSlots; ++i) {
      bound.slots_[i] = find_argument(signature, row->arguments[i]);
    }
  } else if (signature.is_composite) {
    bound.kind_ = OpKind::kFree;  // what it calls is counted
  }

  const auto use = [&](const AddedFormula& added) {
    bound.kind_ = added.kind;
    bound.user_ = std::make_shared<BoundFormula::User>(
        BoundFormula::User{.formula = added.formula, .signature = signature});
  };
  if (const AddedFormula* added = find_added(signature)) {
    use(*added);
    return bound;
  }
  ProcessFormulas& process = process_formulas();
  const std::lock_guard lock(process.mutex);
  if (const AddedFormula* added = process.table.find_added(signature)) use(*added);
  return bound;
}

void add_process_formula(std::string op_name, UserFormula formula, OpKind kind) {
  ProcessFormulas& process = process_formulas();
  const std::lock_guard lock(process.mutex);
  process.table.add(std::move(op_name), std::move(formula), kind);
  process.revision.fetch_add(1, std::memory_order_relaxed);
}

bool remove_process_formula(const std::string& op_name) {
  ProcessFormulas& process = process_formulas();
  const std::lock_guard lock(process.mutex);
  const bool was_there = process.table.remove(op_name);
  if (was_there) process.revision.fetch_add(1, std::memory_order_relaxed);
  return was_there;
}

std::uint64_t process_formula_revision() noexcept {
  return process_formulas().revision.load(std::memory_order_relaxed);
}

// ---- The built-in ones ----

void FormulaIndex::add(std::span<const FormulaRow> rows) {
  for (const FormulaRow& row : rows) rows_.insert_or_assign(std::string(row.name), row);
}

void FormulaIndex::add_names(std::string_view names, const FormulaRow& row) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    if (!name.empty()) rows_.insert_or_assign(std::string("aten::").append(name), row);
  }
}

const FormulaRow* FormulaIndex::find(std::string_view name) const {
  const auto found = rows_.find(name);
  return found != rows_.end() ? &found->second : nullptr;
}

const FormulaRow* FormulaIndex::find(const OpSignature& signature) const {
  std::string_view name = signature.name;
  for (int form = 0; form < 2; ++form) {
    if (const FormulaRow* row = find(with_overload(name, signature.overload))) return row;
    if (const FormulaRow* row = find(name)) return row;
    if (!name.ends_with('_')) return nullptr;
    name.remove_suffix(1);  // in place
  }
  return nullptr;
}

const FormulaIndex& FormulaIndex::built_in() {
  static const auto* const kIndex = [] {
    auto* index = new FormulaIndex;  // never destroyed, as above
    add_free_operators(*index);
    add_elementwise_formulas(*index);
    add_norm_formulas(*index);
    add_pooling_formulas(*index);
    add_resampling_formulas(*index);
    add_optimizer_formulas(*index);
    add_matmul_formulas(*index);
    add_matmul_wrapper_formulas(*index);
    add_convolution_formulas(*index);
    add_attention_formulas(*index);
    add_recurrent_formulas(*index);
    return index;
  }();
  return *kIndex;
}

}  // namespace layertrace
