// What was asked of a GPU and what it did, as the side that talks to the vendor's library hands it
// over. Times are ticks of the session's clock.
#pragma once

#include <array>
#include <cstdint>

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
  std::uint32_t shared_bytes = 0;
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
};

// The call on the host that asked for it.
struct DeviceLaunch {
  std::uint64_t start_ticks = 0;
  std::uint64_t end_ticks = 0;
  std::uint32_t correlation = 0;
  std::uint32_t tid = 0;
};

// The innermost scope that was open on the thread of that call.
struct DeviceTag {
  std::uint64_t scope = 0;
  std::uint32_t correlation = 0;
};

class DeviceConsumer {
 public:
  virtual ~DeviceConsumer() = default;
  virtual void tag(const DeviceTag& tag) = 0;
  virtual void launch(const DeviceLaunch& launch) = 0;
  virtual void activity(const DeviceActivity& activity) = 0;
};

// How a frame of a thread's stack is known to a device: by the thread, as autograd numbers it, and
// the number of its frames so far that were recorded. 2²⁴ threads and 2⁴⁰ frames fit.
constexpr std::uint64_t frame_id(std::uint64_t thread_key, std::uint64_t number) noexcept {
  return (thread_key & 0xffffffU) << 40 | (number & 0xffffffffffU);
}
constexpr std::uint64_t thread_of_frame(std::uint64_t id) noexcept { return id >> 40; }
constexpr std::uint64_t number_of_frame(std::uint64_t id) noexcept { return id & 0xffffffffffU; }

}  // namespace layertrace
