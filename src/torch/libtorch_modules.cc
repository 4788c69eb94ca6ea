#include "torch/libtorch_modules.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/pooling.h>

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

template <typename Layer>
bool read_kernel_size(const torch::nn::Module& module, std::string& text) {
  const auto* layer = dynamic_cast<const Layer*>(&module);
  if (layer == nullptr) return false;
  for (const std::int64_t size : *layer->options.kernel_size())
    text += (text.empty() ? "" : " × ") + std::to_string(size);
  return true;
}

template <typename... Layers>
std::string kernel_size_of(const torch::nn::Module& module) {
  std::string text;
  (void)(read_kernel_size<Layers>(module, text) || ...);
  return text;
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

std::vector<LibTorchModules::OwnTensor> LibTorchModules::tensors(binding::Module module) {
  std::vector<OwnTensor> tensors;
  const auto add = [&](const auto& named, bool is_buffer) {
    if (named.value().defined())
      tensors.push_back({named.key(), named.value().unsafeGetTensorImpl(), is_buffer});
  };
  for (const auto& named : as_module(module).named_parameters(/*recurse=*/false)) add(named, false);
  for (const auto& named : as_module(module).named_buffers(/*recurse=*/false)) add(named, true);
  return tensors;
}

std::string LibTorchModules::kernel_size(binding::Module module) {
  namespace nn = torch::nn;
  return kernel_size_of<nn::Conv1dImpl, nn::Conv2dImpl, nn::Conv3dImpl, nn::ConvTranspose1dImpl,
                        nn::ConvTranspose2dImpl, nn::ConvTranspose3dImpl, nn::MaxPool1dImpl,
                        nn::MaxPool2dImpl, nn::MaxPool3dImpl, nn::AvgPool1dImpl, nn::AvgPool2dImpl,
                        nn::AvgPool3dImpl, nn::LPPool1dImpl, nn::LPPool2dImpl>(as_module(module));
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
