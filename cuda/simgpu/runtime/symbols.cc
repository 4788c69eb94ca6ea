// Variables of device code: each gets memory on each device when it is first used.
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/api.h"

using simgpu::failed;
using simgpu::machine;

namespace {

struct Symbols {
  std::mutex mutex;
  std::map<const void*, std::size_t> sizes;
  std::map<std::pair<const void*, int>, void*> addresses;  // by device
};
Symbols& symbols() {
  static auto* instance = new Symbols;  // used by what runs before and after main()
  return *instance;
}

struct Symbol {
  void* address = nullptr;
  std::size_t bytes = 0;
};

Symbol find(const void* symbol) {
  Symbols& all = symbols();
  const std::lock_guard lock(all.mutex);
  const auto known = all.sizes.find(symbol);
  if (known == all.sizes.end()) return {};
  const int device = simgpu::this_thread().device;
  void*& address = all.addresses[{symbol, device}];
  if (address == nullptr) {
    address = machine().memory().allocate(simgpu::MemoryKind::kDevice, device,
                                          std::max<std::size_t>(known->second, 1));
  }
  return {address, known->second};
}

}  // namespace

SIMGPU_API void __cudaRegisterVar(void** /*handle*/, char* variable, char* /*device*/,
                                  const char* /*name*/, int /*external*/, std::size_t bytes,
                                  int /*constant*/, int /*global*/) {
  const std::lock_guard lock(symbols().mutex);
  symbols().sizes[variable] = bytes;
}

SIMGPU_API cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  SIMGPU_CALL(call, cudaGetSymbolAddress_v3020, address, symbol);
  if (address == nullptr) return failed(cudaErrorInvalidValue);
  const Symbol found = find(symbol);
  *address = found.address;
  return found.address == nullptr ? failed(cudaErrorInvalidSymbol) : cudaSuccess;
}

SIMGPU_API cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes,
                                          std::size_t offset, cudaMemcpyKind kind) {
  SIMGPU_CALL(call, cudaMemcpyToSymbol_v3020, symbol, from, bytes, offset, kind);
  const Symbol found = find(symbol);
  if (found.address == nullptr) return failed(cudaErrorInvalidSymbol);
  if (offset > found.bytes || bytes > found.bytes - offset) return failed(cudaErrorInvalidValue);
  return cudaMemcpy(static_cast<std::byte*>(found.address) + offset, from, bytes, kind);
}
