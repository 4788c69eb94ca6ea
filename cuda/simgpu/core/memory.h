// The devices' memory, and the host memory that the runtime hands out. Device memory is host memory
// that nobody has touched yet: a program may allocate 80 GB of it on a small machine, as long as it
// does not copy as much into it. It begins as zeros, so that whatever a program reads back is
// defined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

namespace simgpu {

enum class MemoryKind : std::uint8_t { kDevice, kHost, kManaged };

struct Allocation {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  bool registered = false;  // the program's own memory, made known to the runtime
};

class Memory {
 public:
  Memory(int devices, std::uint64_t bytes_per_device)
      : bytes_per_device_(bytes_per_device), used_bytes_(static_cast<std::size_t>(devices)) {}
  ~Memory();
  Memory(const Memory&) = delete;  // it owns what it handed out
  Memory& operator=(const Memory&) = delete;

  // Zeros, at a multiple of 512 bytes; nullptr where the device's memory does not suffice.
  void* allocate(MemoryKind kind, int device, std::size_t bytes);
  // False for an address that allocate() did not give.
  bool free(void* address);

  // Makes memory of the program known, and forgets it again.
  bool add_registered(void* address, std::size_t bytes, int device,
                      MemoryKind kind = MemoryKind::kHost);
  bool remove_registered(void* address);

  // Takes from a device's memory, and gives back, what has no address yet. False: too much.
  bool take(int device, std::size_t bytes);
  void give(int device, std::size_t bytes);

  // The allocation around an address.
  std::optional<Allocation> find(const void* address) const;

  std::uint64_t total_bytes() const noexcept { return bytes_per_device_; }
  std::uint64_t used_bytes(int device) const;

 private:
  using Map = std::map<std::uintptr_t, Allocation>;  // by first address
  Map::const_iterator around(const void* address) const;

  const std::uint64_t bytes_per_device_;
  mutable std::shared_mutex mutex_;
  Map allocations_;
  std::vector<std::uint64_t> used_bytes_;  // by device
};

// Sets memory as cudaMemset does. Whole pages of zeros are given back rather than written.
void fill(void* address, int value, std::size_t bytes) noexcept;

}  // namespace simgpu
