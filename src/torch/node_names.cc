#include "torch/node_names.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/graph_task.h>

#include <string>
#include <string_view>
#include <typeinfo>

#include "base/pointer_table.h"
#include "base/vtable.h"
#include "record/definitions.h"
#include "record/record.h"
#include "torch/parameter_key.h"

namespace layertrace {
namespace {

struct ClassFacts {
  NameId name = kNoName;
  std::uint8_t flags = 0;
};

PointerTable<ClassFacts, 1024>& class_table() {
  static auto* table =
      new PointerTable<ClassFacts, 1024>;  // never destroyed: autograd's threads outlive main
  return *table;
}

// Python's own functions are all nodes of this class, which LibTorch itself does not know.
bool is_python_function(const torch::autograd::Node& node) {
  return std::string_view(typeid(node).name()) == "N5torch8autograd6PyNodeE";
}

ClassFacts look_up(const torch::autograd::Node& node) {
  if (is_python_function(node)) return {kNoName, 0};  // each is to be asked
  std::string name = node.name();
  if (const std::size_t last = name.rfind("::");
      last != std::string::npos && name.find('<') == std::string::npos) {
    name.erase(0, last + 2);
  }
  ClassFacts facts{NameTable::instance().intern(name), 0};
  if (typeid(node) == typeid(torch::autograd::AccumulateGrad)) facts.flags = kAccumulates;
  if (typeid(node) == typeid(torch::autograd::GraphRoot)) facts.flags = kEngineRoot;
  return facts;
}

NameId ask_name(const torch::autograd::Node& node) noexcept {
  try {
    return NameTable::instance().intern(node.name());
  } catch (...) {
    return NameId{0};
  }
}

}  // namespace

NodeDescription describe(const torch::autograd::Node& node) noexcept {
  const void* vtable = vtable_of(&node);
  ClassFacts facts;
  if (const ClassFacts* known = class_table().find(vtable)) [[likely]] {
    facts = *known;
  } else {
    try {
      facts = look_up(node);
      class_table().add(vtable, facts);
    } catch (...) {  // a name() that throws is the node's own affair
      facts = {NameId{0}, 0};
    }
  }
  if (facts.name == kNoName) [[unlikely]]
    facts.name = ask_name(node);
  if ((facts.flags & kAccumulates) != 0) {
    const auto& accumulate = static_cast<const torch::autograd::AccumulateGrad&>(node);
    return {facts.name, facts.flags, parameter_key(*accumulate.variable.unsafeGetTensorImpl())};
  }
  return {facts.name, facts.flags, pack({node.sequence_nr(), node.thread_id()})};
}

}  // namespace layertrace
