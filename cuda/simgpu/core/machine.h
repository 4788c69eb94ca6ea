// The simulated machine: its devices, its clock, its memory, and who wants to be told. One for the
// process; the runtime, the driver, cuBLAS and CUPTI are faces of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/config.h"
#include "core/cost_model.h"
#include "core/device_clock.h"
#include "core/host_functions.h"
#include "core/memory.h"
#include "core/timeline.h"

namespace simgpu {

// A stream as the program knows it. It outlives its destruction by the program for as long as work
// refers to it.
struct Stream {
  int device = 0;
  Timeline::StreamId queue = Timeline::kLegacyStream;
  std::uint32_t id = 0;  // as records tell it
  int priority = 0;
  unsigned flags = 0;
};

// Something that ran on a device.
struct Activity {
  enum class Kind : std::uint8_t { kKernel, kCopy, kFill };
  Kind kind = Kind::kKernel;
  int device = 0;
  std::uint32_t stream_id = 0;
  std::uint32_t correlation = 0;
  Slot slot;
  const char* name = "";  // of a kernel; lives as long as the process
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;
  std::uint64_t bytes = 0;  // of a copy or a fill
  CopyPath path = CopyPath::kWithin;
  int value = 0;  // of a fill
};

// Is told of everything, on the thread that calls. CUPTI's stand-in is one.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_activity(const Activity& activity) = 0;
};

class Device {
 public:
  explicit Device(int device_number);
  Timeline timeline;
  Stream legacy_stream;      // the default stream of programs that say nothing
  Stream per_thread_stream;  // the default stream of those that ask for one of their own
  const int number;
};

class Machine {
 public:
  // Made on first use. A set-up that cannot be is told on stderr and ends the process: a program
  // that asks for what there is not must not run as if it had it.
  static Machine& instance();

  explicit Machine(Config config);

  const Config& config() const noexcept { return config_; }
  const DeviceProfile& profile() const noexcept { return *config_.profile; }
  DeviceClock& clock() noexcept { return clock_; }
  Memory& memory() noexcept { return memory_; }
  HostFunctions& host_functions() noexcept { return host_functions_; }
  // Waits until it is that time, and all that a stream was to call by then has been called.
  void wait_until(std::uint64_t ns);
  bool reached(std::uint64_t ns);
  int device_count() const noexcept { return static_cast<int>(devices_.size()); }
  Device& device(int number) noexcept { return *devices_[static_cast<std::size_t>(number)]; }
  std::uint32_t new_stream_id() noexcept { return next_stream_id_.fetch_add(1); }
  std::uint32_t new_correlation() noexcept { return next_correlation_.fetch_add(1); }

  // What runs: it gets its place in time, and the observer is told.
  Slot run_kernel(const Stream& stream, Activity kernel, std::uint64_t duration_ns);
  Slot run_copy(const Stream& stream, CopyPath path, std::uint64_t bytes,
                std::uint32_t correlation);
  Slot run_fill(const Stream& stream, int value, std::uint64_t bytes, std::uint32_t correlation);

  // Kernels' names, by the address that a program launches them with.
  void add_kernel(const void* function, const char* name);
  const char* kernel_name(const void* function) const;

  // At most one; nullptr for none.
  void set_observer(Observer* observer) noexcept { observer_.store(observer); }

  // The device was lost (a fault that was asked for): nothing works from then on.
  bool lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  // Counts a launch, or an allocation, for the faults that come with one; false: it fails.
  bool count_launch() noexcept;
  bool count_allocation() noexcept;

 private:
  Slot run(const Stream& stream, Activity& activity, std::uint64_t duration_ns, Engine engine);

  const Config config_;
  DeviceClock clock_;
  Memory memory_;
  HostFunctions host_functions_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::atomic<std::uint32_t> next_stream_id_{16};
  std::atomic<std::uint32_t> next_correlation_{1};
  std::atomic<Observer*> observer_{nullptr};
  mutable std::mutex kernels_mutex_;
  std::unordered_map<const void*, std::string> kernels_;
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<bool> lost_{false};
};

}  // namespace simgpu
