// LibTorch's own modules, for the registry.
#pragma once

#include <string>

#include <layertrace/binding.h>

namespace torch::nn {
class Module;
}

namespace layertrace {

// "Linear" for torch::nn::LinearImpl, "Net" for a class of one's own.
std::string type_name(const torch::nn::Module& module);

class LibTorchModules final : public binding::ModuleSource {
 public:
  std::string type_name(binding::Module module) override;
  std::vector<Child> children(binding::Module module) override;
  std::vector<OwnTensor> tensors(binding::Module module) override;
  std::string kernel_size(binding::Module module) override;
  std::shared_ptr<const void> remember(binding::Module module) override;
  bool is_same(binding::Module module, const void* remembered) override;
};

}  // namespace layertrace
