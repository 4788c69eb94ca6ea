// What tells one parameter from another, also from one that comes to stand at its address later:
// the address, mixed with that of its version counter. Whoever knows a parameter holds on to its
// counter, which nothing of the user's sees (a weak reference to the tensor would keep him from
// swapping it), so that no other tensor can come by the same one.
#pragma once

#include <c10/core/TensorImpl.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace layertrace {

inline std::uint64_t parameter_key(const c10::TensorImpl& tensor) noexcept {
  // Several tensors may share a counter (views do), but not the address, too.
  static_assert(sizeof(c10::VariableVersion) == sizeof(std::uint64_t));
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;
  std::uint64_t counter = 0;
  std::memcpy(&counter, static_cast<const void*>(&tensor.version_counter()), sizeof(counter));
  return reinterpret_cast<std::uintptr_t>(&tensor) + std::rotl(counter * kMix, 32);
}

}  // namespace layertrace
