// Functions of the program that streams call when they come to them, on a thread of the runtime,
// one at a time: those of one stream in the order of their launch.
//
// Their place in time is settled at their launch, as a kernel's is; whoever waits for the stream
// also waits until they have returned.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "core/device_clock.h"

namespace simgpu {

class HostFunctions {
 public:
  explicit HostFunctions(DeviceClock& clock) : clock_(clock) {}
  HostFunctions(const HostFunctions&) = delete;  // its thread refers to it
  HostFunctions& operator=(const HostFunctions&) = delete;

  // What a stream has to have called by then.
  struct Due {
    std::uint64_t stream = 0;  // its number on the machine, or kEveryStream
    std::uint64_t by_ns = 0;
  };
  static constexpr std::uint64_t kEveryStream = ~std::uint64_t{0};

  // Calls the function at that time. On a virtual clock, as soon as may be.
  void add(std::uint64_t stream, std::uint64_t due_ns, std::function<void()> function);

  // Whether none waits to be called: without a lock.
  bool none() const noexcept { return pending_.load(std::memory_order_acquire) == 0; }
  // Whether all that is due has been called, and waiting until it is.
  bool settled(const std::vector<Due>& dues);
  void settle(const std::vector<Due>& dues);

  // The thread that calls them: what it runs must not wait for the device.
  static bool is_calling() noexcept;

 private:
  struct Entry {
    std::uint64_t stream;
    std::uint64_t due_ns;
    std::function<void()> function;
  };
  bool has(const std::vector<Due>& dues) const;
  [[noreturn]] void run();

  DeviceClock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable called_;
  std::deque<Entry> queue_;              // in the order of their launch
  std::optional<Entry> now_;             // what is being called
  std::atomic<std::size_t> pending_{0};  // those in the queue, and the one that is being called
  bool started_ = false;
};

}  // namespace simgpu
