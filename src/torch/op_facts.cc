#include "torch/op_facts.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_set>

#include "record/definitions.h"

namespace layertrace {

bool is_composite(const at::RecordFunction& fn) {
  const auto name = fn.operator_name();
  if (!name) return true;
  const auto op = c10::Dispatcher::singleton().findOp(*name);
  if (!op) return true;
  using c10::DispatchKey;
  if (op->hasKernelForDispatchKey(DispatchKey::CPU) ||
      op->hasKernelForDispatchKey(DispatchKey::CUDA))
    return false;
  if (op->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) || !op->hasSchema())
    return true;
  const auto& results = op->schema().returns();
  return std::any_of(results.begin(), results.end(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

const char* kept_text(NameId name, const char* text) {
  constexpr std::size_t kMostMore = 4096;
  const std::string& known = NameTable::instance().text(name);
  if (known == text) return known.c_str();
  static auto& mutex = *new std::mutex;  // never destroyed: operators may run while it all ends
  static auto& more = *new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  if (const auto found = more.find(text); found != more.end()) return found->c_str();
  return more.size() < kMostMore ? more.emplace(text).first->c_str() : known.c_str();
}

}  // namespace layertrace
