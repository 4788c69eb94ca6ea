// How long layers take on a stream, by pairs of CUDA events around their calls and their backward.
//
// It needs no CUPTI: clusters that forbid profiling allow events. An event costs the host a few
// hundred nanoseconds when it is recorded; reading it is left to the writer's thread, and nobody
// waits for a device. Events go round. None is recorded on a stream that is being captured.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <layertrace/profile.h>

#include "activity/cuda_runtime.h"
#include "base/bounded_queue.h"
#include "capture/device.h"
#include "capture/layer_marks.h"

namespace layertrace::cuda {

class EventTimer final : public LayerMarks {
 public:
  EventTimer(const CudaRuntime& runtime, CurrentStream (*current_stream)() noexcept,
             double ns_per_tick);
  ~EventTimer() override;

  // How another calls streams of the calling thread's device, so that both mean the same by a
  // number. Before the first mark; it does not throw.
  using NameStream = std::function<std::optional<std::uint32_t>(cudaStream_t)>;
  void name_streams(NameStream name) { name_stream_ = std::move(name); }

  // The session is over: destroys the events. On a thread of ours, as drain(). Threads of the
  // program may still end what they have begun.
  void close() noexcept;

  void begin_layer(LayerId layer, Phase phase, std::uint64_t frame) noexcept override;
  void begin_region(NameId name, Phase phase) noexcept override;
  void end() noexcept override;

  // Hands over the pairs that the devices have come to since. On a thread of ours: it sets the
  // thread's device.
  void drain(DeviceConsumer& consumer, bool all);
  void add_to(GpuHealth& health) const noexcept;

 private:
  struct Pair {
    cudaEvent_t start = nullptr;
    cudaEvent_t stop = nullptr;
    cudaStream_t stream = nullptr;
    std::uint64_t host_ticks = 0;
    std::uint64_t frame = 0;
    LayerId layer = kNoLayer;
    Phase phase = Phase::kForward;
    std::uint32_t device = 0;
    std::uint32_t stream_id = 0;
    std::uint32_t depth = 0;
  };
  // The pairs that a thread has open; a region's has no events.
  struct Open;
  static Open* open_pairs() noexcept;  // nullptr without memory

  // Where a device's events are on our clock. Events tell only how far two of them are apart: each
  // is placed by its distance from a reference that moves along. An event is never reached before
  // the host has asked for it, and when the stream is idle, right then: so the largest distance by
  // which the host was behind so far is the offset.
  struct Timeline {
    cudaEvent_t reference = nullptr;
    double reference_ns = 0;             // since the first
    std::int64_t offset_ticks = 0;       // since the reference was moved
    std::int64_t last_offset_ticks = 0;  // before that: clocks drift, so no further back
    bool has_offset = false;
  };
  struct Device {
    explicit Device(std::size_t most) : free(most) {}
    BoundedQueue<cudaEvent_t> free;
    std::atomic<std::size_t> made{0};
    // The writer's.
    Timeline timeline;
    std::deque<Pair> waiting;
  };
  static constexpr std::size_t kMostDevices = 64;
  static constexpr std::size_t kMostEvents = std::size_t{1} << 15;  // of a device
  static constexpr std::size_t kMostPairs = std::size_t{1} << 15;   // on their way to the writer

  bool start(Pair& pair, Open& open) noexcept;
  bool is_current(std::uint32_t device) const noexcept;
  bool is_capturing(cudaStream_t stream) const noexcept;
  Device* device(std::uint32_t index) noexcept;
  cudaEvent_t take_event(Device& device) noexcept;
  void give_back(Device& device, cudaEvent_t event) noexcept;
  void throw_away(Device& device, cudaEvent_t event) noexcept;
  bool record(cudaEvent_t event, cudaStream_t stream) noexcept;
  void destroy(cudaEvent_t event) noexcept;
  void destroy_done() noexcept;
  bool set_device(std::uint32_t index) const noexcept;
  void drain_device(std::uint32_t index, Device& device, DeviceConsumer& consumer, bool all);
  bool resolve(std::uint32_t index, Device& device, const Pair& pair, DeviceConsumer& consumer,
               bool all);
  bool place(Device& device, const Pair& pair, std::uint64_t& start_ticks) noexcept;
  std::uint32_t stream_id(const Pair& pair, Open& open) noexcept;

  const CudaRuntime& runtime_;
  CurrentStream (*const current_stream_)() noexcept;
  const double ticks_per_ns_;
  std::array<std::atomic<Device*>, kMostDevices> devices_{};
  NameStream name_stream_;
  BoundedQueue<Pair> done_{kMostPairs};
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> pairs_{0};
  std::atomic<std::uint64_t> missed_{0};
  std::atomic<std::uint64_t> capturing_{0};
};

}  // namespace layertrace::cuda
