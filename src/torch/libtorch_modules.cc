#include "torch/libtorch_modules.h"

#include <torch/nn/module.h>

#include <string_view>

#include "base/vtable.h"
#include "torch/module_identity.h"

namespace layertrace {
namespace {

struct Remembered {
  const void* vtable;
  std::weak_ptr<const void> owner;
};

const torch::nn::Module& as_module(binding::Module module) {
  return *static_cast<const torch::nn::Module*>(module);
}

}  // namespace

std::string type_name(const torch::nn::Module& module) {
  std::string name = module.name();
  // The part after the last "::" that is in no template bracket.
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 1;) {
    if (name[i] == '>' || name[i] == ')') ++depth;
    if (name[i] == '<' || name[i] == '(') --depth;
    if (depth == 0 && name[i] == ':' && name[i - 1] == ':') {
      name.erase(0, i + 1);
      break;
    }
  }
  constexpr std::string_view kSuffix = "Impl";
  if (name.size() > kSuffix.size() && name.ends_with(kSuffix))
    name.resize(name.size() - kSuffix.size());
  return name;
}

std::string LibTorchModules::type_name(binding::Module module) {
  return layertrace::type_name(as_module(module));
}

std::vector<LibTorchModules::Child> LibTorchModules::children(binding::Module module) {
  std::vector<Child> children;
  for (const auto& child : as_module(module).named_children()) {
    if (child.value() != nullptr) children.push_back({child.key(), child.value().get()});
  }
  return children;
}

std::vector<void*> LibTorchModules::parameters(binding::Module module) {
  std::vector<void*> tensors;
  for (const auto& parameter : as_module(module).parameters(/*recurse=*/false)) {
    if (parameter.defined()) tensors.push_back(parameter.unsafeGetTensorImpl());
  }
  return tensors;
}

std::shared_ptr<const void> LibTorchModules::remember(binding::Module module) {
  return std::make_shared<const Remembered>(
      Remembered{vtable_of(module), as_module(module).weak_from_this()});
}

bool LibTorchModules::is_same(binding::Module module, const void* remembered) {
  const auto& known = *static_cast<const Remembered*>(remembered);
  return known.vtable == vtable_of(module) && has_owner(as_module(module), known.owner);
}

}  // namespace layertrace
