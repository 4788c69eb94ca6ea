// From dense ids to handles that others gave us, filled as ids are first met, read without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace layertrace {

template <typename Handle>
class HandleTable {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 18;

  HandleTable() = default;
  ~HandleTable() {
    for (auto& block : blocks_) delete block.load(std::memory_order_relaxed);
  }
  HandleTable(const HandleTable&) = delete;  // its blocks are its own
  HandleTable& operator=(const HandleTable&) = delete;

  // The handle of that id, made on the first call; where two threads are first at once, both make
  // one and either is kept. `make` may throw.
  template <typename Make>
  Handle get(std::uint32_t id, const Make& make) {
    if (id >= kMost) return make();
    std::atomic<Block*>& place = blocks_[id / kBlock];
    Block* block = place.load(std::memory_order_acquire);
    if (block == nullptr) {
      auto fresh = std::make_unique<Block>();
      if (place.compare_exchange_strong(block, fresh.get())) block = fresh.release();
    }
    std::atomic<Handle>& handle = (*block)[id % kBlock];
    Handle known = handle.load(std::memory_order_acquire);
    if (known == Handle{}) handle.store(known = make(), std::memory_order_release);
    return known;
  }

 private:
  static constexpr std::size_t kBlock = 256;
  using Block = std::array<std::atomic<Handle>, kBlock>;
  std::array<std::atomic<Block*>, kMost / kBlock> blocks_{};
};

}  // namespace layertrace
