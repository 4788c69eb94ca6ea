// Functions of the program that a stream calls when it comes to them, on a thread of the runtime,
// one after the other in the order of their launch.
//
// Their place in time is settled at their launch, as a kernel's is; whoever waits for the stream
// also waits until they have returned.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "core/device_clock.h"

namespace simgpu {

class HostFunctions {
 public:
  explicit HostFunctions(DeviceClock& clock) : clock_(clock) {}
  HostFunctions(const HostFunctions&) = delete;  // its thread refers to it
  HostFunctions& operator=(const HostFunctions&) = delete;

  // Calls the function at that time. On a virtual clock, as soon as may be.
  void add(std::uint64_t due_ns, std::function<void()> function);

  // Whether all that is due by then has been called, and waiting until it is.
  bool settled(std::uint64_t until_ns);
  void settle(std::uint64_t until_ns);

 private:
  struct Entry {
    std::uint64_t due_ns;
    std::function<void()> function;
  };
  bool has_due(std::uint64_t until_ns) const;
  [[noreturn]] void run();

  DeviceClock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable called_;
  std::deque<Entry> queue_;  // the first is the one that is being waited for or called
  bool started_ = false;
};

}  // namespace simgpu
