// Which module is it? An address is not enough: memory is used again, and a temporary of the same
// class may come to lie where a registered module was. The control block of the module's shared_ptr
// tells them apart, since whoever remembers it holds it, so that no other can take its place. A
// module on the stack has none; its class must do.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <type_traits>

namespace layertrace {

// Looks at the pointer inside the module without copying it: a copy counts, with two locked
// instructions.
inline bool has_owner(const torch::nn::Module& module,
                      const std::weak_ptr<const void>& owner) noexcept {
  using Self = std::enable_shared_from_this<torch::nn::Module>;
  using Pointer = std::weak_ptr<torch::nn::Module>;
  static_assert(std::is_standard_layout_v<Self> && sizeof(Self) == sizeof(Pointer));
  const auto& own = *reinterpret_cast<const Pointer*>(static_cast<const Self*>(&module));
  return !own.owner_before(owner) && !owner.owner_before(own);
}

}  // namespace layertrace
