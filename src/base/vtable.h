// What tells the class of an object that has virtual functions, without a look-up: the address of
// its table of them, which stands first in it.
#pragma once

#include <cstring>

namespace layertrace {

inline const void* vtable_of(const void* object) noexcept {
  const void* vtable = nullptr;
  std::memcpy(static_cast<void*>(&vtable), object, sizeof(vtable));
  return vtable;
}

}  // namespace layertrace
