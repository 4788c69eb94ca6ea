// What was asked of a GPU and what it did, as the side that talks to the vendor's library hands it
// over. Times are ticks of the session's clock.
#pragma once

#include <array>
#include <cstdint>

#include <layertrace/profile.h>

#include "record/ids.h"

namespace layertrace {

enum class DeviceKind : std::uint8_t { kKernel, kCopy, kSet };

// A kernel, copy or set that ran on a device.
struct DeviceActivity {
  std::uint64_t start_ticks = 0;
  std::uint64_t end_ticks = 0;
  std::uint64_t bytes = 0;       // of a copy or set
  std::uint64_t graph_node = 0;  // of a CUDA graph; 0 where it was launched by itself
  std::uint32_t correlation = 0;
  NameId name = kNoName;
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  DeviceKind kind = DeviceKind::kKernel;
  // Of a kernel.
  std::uint16_t registers = 0;
  float occupancy = 0;  // in 0…1: of a multiprocessor's warps, those that can be there at once
  std::uint32_t shared_bytes = 0;
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
};

// What a call on the host wants of a device.
enum class CallKind : std::uint8_t {
  kAsk,   // something to be done, at some time
  kCopy,  // likewise a copy or set
  kWait,  // that something is done: the host waits
};

// The call on the host that asked for it, or waited.
struct DeviceLaunch {
  std::uint64_t start_ticks = 0;
  std::uint64_t end_ticks = 0;
  std::uint32_t correlation = 0;
  std::uint32_t tid = 0;
  NameId name = kNoName;  // "cudaLaunchKernel"
  CallKind kind = CallKind::kAsk;
  bool asks_for_many = false;  // things at once: what a graph holds, a batch of copies
};

// The innermost scope that was open on the thread of that call.
struct DeviceTag {
  std::uint64_t scope = 0;
  std::uint32_t correlation = 0;
};

// A node of a CUDA graph was captured inside this frame.
struct DeviceGraphNode {
  std::uint64_t node = 0;
  std::uint64_t frame = 0;
};

// How long a layer's call took on a stream, by a pair of CUDA events around it.
struct DeviceEventPair {
  std::uint64_t start_ticks = 0;  // on the device
  std::uint64_t end_ticks = 0;
  std::uint64_t host_ticks = 0;  // when the host came to the first
  std::uint64_t frame = 0;       // of a module's call; 0 of a backward span
  LayerId layer = kNoLayer;
  Phase phase = Phase::kForward;  // as it was begun; the frame may know better
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
  std::uint32_t depth = 0;  // how many pairs are around it
};

// A figure of a device at a moment.
enum class DeviceCounter : std::uint8_t { kMemoryAllocated, kMemoryReserved };
struct DeviceSample {
  std::uint64_t ticks = 0;
  std::uint64_t value = 0;
  std::uint32_t device = 0;
  DeviceCounter counter = DeviceCounter::kMemoryAllocated;
};

class DeviceConsumer {
 public:
  virtual ~DeviceConsumer() = default;
  virtual void tag(const DeviceTag& tag) = 0;
  virtual void launch(const DeviceLaunch& launch) = 0;
  virtual void activity(const DeviceActivity& activity) = 0;
  virtual void graph_node(const DeviceGraphNode& node) = 0;
  virtual void event_pair(const DeviceEventPair& pair) = 0;
  virtual void sample(const DeviceSample& sample) = 0;
};

// How a device knows what runs on a thread: by the session, the thread as autograd numbers it, and
// the number of the thread's last record that has one (see has_number()). 2⁸ sessions, 2²⁰ threads
// and 2³⁶ records fit. Never 0, since numbers begin with 1.
constexpr std::uint64_t frame_id(std::uint32_t session, std::uint64_t thread_key,
                                 std::uint64_t number) noexcept {
  return std::uint64_t{session & 0xffU} << 56 | (thread_key & 0xfffffU) << 36 |
         (number & 0xfffffffffU);
}
constexpr std::uint32_t session_of_frame(std::uint64_t id) noexcept {
  return static_cast<std::uint32_t>(id >> 56);
}
constexpr std::uint64_t thread_of_frame(std::uint64_t id) noexcept { return id >> 36 & 0xfffffU; }
constexpr std::uint64_t number_of_frame(std::uint64_t id) noexcept { return id & 0xfffffffffU; }

}  // namespace layertrace
