// A small table from addresses to facts, read by any thread without a lock. Entries are added under
// a mutex, never changed and never removed; a full table simply remembers no more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace layertrace {

template <typename Value, std::size_t kSlots>
class PointerTable {
  static_assert((kSlots & (kSlots - 1)) == 0);

 public:
  const Value* find(const void* key) const noexcept {
    for (std::size_t i = first(key), probes = 0; probes < kMaxProbes;
         i = (i + 1) % kSlots, ++probes) {
      const void* known = slots_[i].key.load(std::memory_order_acquire);
      if (known == nullptr) return nullptr;  // first, so that the null key finds nothing
      if (known == key) return &slots_[i].value;
    }
    return nullptr;
  }

  void add(const void* key, const Value& value) noexcept {
    // An entry that is not added is looked up again; so nobody waits, least of all in a forked
    // child, where a thread that holds the mutex may be missing.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    for (std::size_t i = first(key), probes = 0; probes < kMaxProbes;
         i = (i + 1) % kSlots, ++probes) {
      const void* known = slots_[i].key.load(std::memory_order_relaxed);
      if (known == key) return;
      if (known != nullptr) continue;
      slots_[i].value = value;
      slots_[i].key.store(key, std::memory_order_release);
      return;
    }
  }

 private:
  static constexpr std::size_t kMaxProbes = 16;
  static std::size_t first(const void* key) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(key);
    return (bits >> 3 ^ bits >> 13) % kSlots;
  }

  struct Slot {
    std::atomic<const void*> key{nullptr};
    Value value;
  };
  std::array<Slot, kSlots> slots_;
  std::mutex mutex_;
};

}  // namespace layertrace
