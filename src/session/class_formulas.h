// Formulas of the user's for classes of modules: the process's, and those of the session that runs.
#pragma once

#include <memory>
#include <typeindex>

#include <layertrace/layertrace.h>

namespace layertrace {

// The one for a module of this type, nullptr where there is none. It stays good when others take
// its place.
std::shared_ptr<const ModuleFormula> find_class_formula(const torch::nn::Module& module,
                                                        std::type_index type);

// Whether there is any: one relaxed load.
bool has_class_formulas() noexcept;

// A session's formulas, of operators and of classes, for as long as this lives; then the process's
// are back.
class SessionFormulas {
 public:
  static Result<std::unique_ptr<SessionFormulas>> add(const Formulas& formulas);
  ~SessionFormulas();
  SessionFormulas(const SessionFormulas&) = delete;  // what it takes away again is there once
  SessionFormulas& operator=(const SessionFormulas&) = delete;

 private:
  SessionFormulas() = default;
  std::vector<std::string> ops_;
};

// Of the process's, where a session's was in its place.
void restore_formula(const std::string& op);
// A session's: it is not the process's afterwards.
Result<void> set_formula(const std::string& op, Formula formula);

}  // namespace layertrace
