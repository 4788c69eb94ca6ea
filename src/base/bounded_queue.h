// A queue of so many things at most, which any number of threads fill and empty without a lock.
// Each place has a turn, which says whether it is to be filled or emptied next.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace layertrace {

template <typename T>
class BoundedQueue {
 public:
  // Two places at least: with one, filled and to be filled again would have the same turn.
  explicit BoundedQueue(std::size_t capacity)
      : mask_(std::bit_ceil(std::max<std::size_t>(capacity, 2)) - 1),
        places_(std::make_unique<Place[]>(mask_ + 1)) {
    for (std::size_t i = 0; i <= mask_; ++i) places_[i].turn.store(i, std::memory_order_relaxed);
  }

  // False when it is full.
  bool push(const T& value) noexcept {
    std::size_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Place& place = places_[at & mask_];
      const auto ahead =
          static_cast<std::ptrdiff_t>(place.turn.load(std::memory_order_acquire) - at);
      if (ahead < 0) return false;
      if (ahead > 0) {
        at = tail_.load(std::memory_order_relaxed);
      } else if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
        place.value = value;
        place.turn.store(at + 1, std::memory_order_release);
        return true;
      }
    }
  }

  // False when it is empty.
  bool pop(T& value) noexcept {
    std::size_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
      Place& place = places_[at & mask_];
      const auto ahead =
          static_cast<std::ptrdiff_t>(place.turn.load(std::memory_order_acquire) - (at + 1));
      if (ahead < 0) return false;
      if (ahead > 0) {
        at = head_.load(std::memory_order_relaxed);
      } else if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
        value = place.value;
        place.turn.store(at + mask_ + 1, std::memory_order_release);
        return true;
      }
    }
  }

  // How many are in it, if nobody is at it.
  std::size_t size() const noexcept {
    return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_relaxed);
  }

 private:
  struct Place {
    std::atomic<std::size_t> turn{0};
    T value{};
  };
  const std::size_t mask_;
  const std::unique_ptr<Place[]> places_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
};

}  // namespace layertrace
