#include "core/memory.h"

#include <sys/mman.h>

#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

namespace simgpu {
namespace {

constexpr std::size_t kPageBytes = 4096;
// As cudaMalloc: nothing smaller is taken from the device.
constexpr std::size_t kGranuleBytes = 512;

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

Memory::~Memory() {
  for (const auto& [address, allocation] : allocations_) {
    if (!allocation.registered) munmap(allocation.base, rounded_up(allocation.bytes, kPageBytes));
  }
}

void* Memory::allocate(MemoryKind kind, int device, std::size_t bytes) {
  const std::unique_lock lock(mutex_);
  const auto index = static_cast<std::size_t>(device);
  const std::size_t taken = rounded_up(bytes, kGranuleBytes);
  const bool on_device = kind != MemoryKind::kHost;
  if (taken < bytes || (on_device && taken > bytes_per_device_ - used_bytes_[index]))
    return nullptr;
  void* base = mmap(nullptr, rounded_up(taken, kPageBytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  if (on_device) used_bytes_[index] += taken;
  allocations_[reinterpret_cast<std::uintptr_t>(base)] = {
      .base = static_cast<std::byte*>(base), .bytes = taken, .kind = kind, .device = device};
  return base;
}

bool Memory::free(void* address) {
  const std::unique_lock lock(mutex_);
  const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == allocations_.end() || found->second.registered) return false;
  const Allocation freed = found->second;
  allocations_.erase(found);
  if (freed.kind != MemoryKind::kHost)
    used_bytes_[static_cast<std::size_t>(freed.device)] -= freed.bytes;
  munmap(freed.base, rounded_up(freed.bytes, kPageBytes));
  return true;
}

bool Memory::add_registered(void* address, std::size_t bytes, int device, MemoryKind kind) {
  const std::unique_lock lock(mutex_);
  if (around(address) != allocations_.end()) return false;
  allocations_[reinterpret_cast<std::uintptr_t>(address)] = {
      .base = static_cast<std::byte*>(address),
      .bytes = bytes,
      .kind = kind,
      .device = device,
      .registered = true};
  return true;
}

bool Memory::remove_registered(void* address) {
  const std::unique_lock lock(mutex_);
  const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == allocations_.end() || !found->second.registered) return false;
  allocations_.erase(found);
  return true;
}

bool Memory::take(int device, std::size_t bytes) {
  const std::unique_lock lock(mutex_);
  std::uint64_t& used = used_bytes_[static_cast<std::size_t>(device)];
  if (bytes > bytes_per_device_ - used) return false;
  used += bytes;
  return true;
}

void Memory::give(int device, std::size_t bytes) {
  const std::unique_lock lock(mutex_);
  used_bytes_[static_cast<std::size_t>(device)] -= bytes;
}

Memory::Map::const_iterator Memory::around(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto after = allocations_.upper_bound(at);
  if (after == allocations_.begin()) return allocations_.end();
  const auto candidate = std::prev(after);
  return at - candidate->first < candidate->second.bytes ? candidate : allocations_.end();
}

std::optional<Allocation> Memory::find(const void* address) const {
  const std::shared_lock lock(mutex_);
  const auto found = around(address);
  if (found == allocations_.end()) return std::nullopt;
  return found->second;
}

std::uint64_t Memory::used_bytes(int device) const {
  const std::shared_lock lock(mutex_);
  return used_bytes_[static_cast<std::size_t>(device)];
}

void fill(void* address, int value, std::size_t bytes) noexcept {
  auto* first = static_cast<std::byte*>(address);
  constexpr std::size_t kWorthGivingBack = 64 * kPageBytes;
  if (static_cast<unsigned char>(value) != 0 || bytes < kWorthGivingBack) {
    std::memset(first, value, bytes);
    return;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(first);
  const std::size_t head = rounded_up(begin, kPageBytes) - begin;
  const std::size_t middle = (bytes - head) / kPageBytes * kPageBytes;
  std::memset(first, 0, head);
  if (madvise(first + head, middle, MADV_DONTNEED) != 0) std::memset(first + head, 0, middle);
  std::memset(first + head + middle, 0, bytes - head - middle);
}

}  // namespace simgpu
