// Which module is it? An address is not enough: memory is used again, and a temporary of the same
// class may come to lie where a registered module was. The control block of the module's shared_ptr
// tells them apart, since whoever remembers it holds it, so that no other can take its place.
#pragma once

#include <torch/nn/module.h>

#include <cstring>
#include <memory>
#include <type_traits>

namespace layertrace {

// A module on the stack has no control block; its class must do.
inline const void* vtable_of(const torch::nn::Module& module) noexcept {
  const void* vtable = nullptr;
  std::memcpy(&vtable, static_cast<const void*>(&module), sizeof(vtable));
  return vtable;
}

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
