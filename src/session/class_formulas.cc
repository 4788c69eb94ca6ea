#include "session/class_formulas.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace layertrace {
namespace {

struct Known {
  std::type_index type;
  bool (*is_of)(const torch::nn::Module& module);
  std::shared_ptr<const ModuleFormula> formula;
};

struct KnownClasses {
  std::mutex mutex;
  std::vector<Known> process;
  std::vector<Known> session;
};
KnownClasses& known_classes() {
  static auto* instance = new KnownClasses;  // never destroyed: modules may run while it all ends
  return *instance;
}

constexpr std::uint32_t kOneFormula = 2;  // in follows_calls, beside the bit for counting

bool take_away(std::vector<Known>& from, std::type_index type) {
  const auto taken = std::erase_if(from, [&](const Known& each) { return each.type == type; });
  detail::follows_calls.fetch_sub(static_cast<std::uint32_t>(taken) * kOneFormula);
  return taken != 0;
}

void put(std::vector<Known>& to, detail::ClassFormula added) {
  take_away(to, added.type);
  to.push_back(
      {added.type, added.is_of, std::make_shared<const ModuleFormula>(std::move(added.formula))});
  detail::follows_calls.fetch_add(kOneFormula);
}

}  // namespace

bool has_class_formulas() noexcept {
  return detail::follows_calls.load(std::memory_order_relaxed) >= kOneFormula;
}

std::shared_ptr<const ModuleFormula> find_class_formula(const torch::nn::Module& module,
                                                        std::type_index type) {
  KnownClasses& known = known_classes();
  const std::lock_guard lock(known.mutex);
  for (const auto* classes : {&known.session, &known.process}) {
    const auto own = std::ranges::find(*classes, type, &Known::type);
    if (own != classes->end()) return own->formula;
  }
  for (const auto* classes : {&known.session, &known.process}) {
    const auto base = std::find_if(classes->rbegin(), classes->rend(),
                                   [&](const Known& each) { return each.is_of(module); });
    if (base != classes->rend()) return base->formula;
  }
  return nullptr;
}

namespace detail {

void add_formula(ClassFormula formula) {
  KnownClasses& known = known_classes();
  const std::lock_guard lock(known.mutex);
  put(known.process, std::move(formula));
}

bool remove_formula(std::type_index type) {
  KnownClasses& known = known_classes();
  const std::lock_guard lock(known.mutex);
  return take_away(known.process, type);
}

}  // namespace detail

Result<std::unique_ptr<SessionFormulas>> SessionFormulas::add(const Formulas& formulas) {
  std::unique_ptr<SessionFormulas> added(new SessionFormulas);  // takes away what an error leaves
  for (const auto& [op, formula] : formulas.ops_) {
    if (auto set = set_formula(op, formula); !set) return set.error();
    added->ops_.push_back(op);
  }
  KnownClasses& known = known_classes();
  const std::lock_guard lock(known.mutex);
  for (const detail::ClassFormula& each : formulas.classes_) put(known.session, each);
  return added;
}

SessionFormulas::~SessionFormulas() {
  for (const std::string& op : ops_) restore_formula(op);
  KnownClasses& known = known_classes();
  const std::lock_guard lock(known.mutex);
  while (!known.session.empty()) take_away(known.session, known.session.back().type);
}

}  // namespace layertrace
