// Standing in for a function of LibTorch: a library that comes first in the lookup order defines
// it, does its own part, and calls the real one, which is the next in that order.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "torch/engine.h"

namespace layertrace {

// Where LibTorch's own definition is: the next in the lookup order, or, where layertrace is not in
// that order before LibTorch (loaded later, by Python), LibTorch's own.
inline void* look_up_next(const char* symbol) {
  if (engine_is_interposed()) return dlsym(RTLD_NEXT, symbol);
  static void* const kLibTorch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  return kLibTorch != nullptr ? dlsym(kLibTorch, symbol) : nullptr;
}

// Looked up once per function. LibTorch is loaded wherever its functions are called, so a name that
// is not found means that layertrace was built against another LibTorch; nothing sensible could be
// returned.
inline void* find_next(const char* symbol) {
  if (void* next = look_up_next(symbol)) return next;
  std::fprintf(stderr,
               "layertrace: LibTorch has no %s. layertrace was built against another version of "
               "LibTorch; build it again "
               "against this one.\n",
               symbol);
  std::abort();
}

// A member function is called as a free one with `this` as first argument: so the Itanium C++ ABI
// has it on Linux.
template <typename Result, typename Owner, typename... Args>
auto next_function(const char* symbol) {
  return reinterpret_cast<Result (*)(Owner*, Args...)>(find_next(symbol));
}

template <typename Result, typename... Args>
auto next_free_function(const char* symbol) {
  return reinterpret_cast<Result (*)(Args...)>(find_next(symbol));
}

}  // namespace layertrace
