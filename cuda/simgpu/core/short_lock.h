// A lock for a few instructions: a mutex would take longer than what it guards. Who holds it waits
// for nobody; now and then it may need memory.
#pragma once

#include <atomic>
#include <thread>

namespace simgpu {

class ShortLock {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) {
      // Its holder may have lost the processor.
      while (held_.load(std::memory_order_relaxed)) std::this_thread::yield();
    }
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace simgpu
