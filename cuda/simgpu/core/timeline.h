// When does what run? Each stream of a device is a queue in time. What is put into it starts when
// the launch has arrived, all that was put in before has ended, and all that it waits for has
// happened; how long it lasts is known beforehand. So its start and end are settled at once, and
// events, queries, synchronisation and CUPTI's records all read the same figures.
//
// The legacy default stream waits for all blocking streams of its device, and they for it. Copies
// to, from and within a device use one engine each, in the order of their launch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace simgpu {

// A start and an end, on the clock of the machine.
struct Slot {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
};

enum class Engine : std::uint8_t { kCompute, kToDevice, kToHost, kWithin };
inline constexpr std::size_t kEngineCount = 4;

class Timeline {
 public:
  using StreamId = std::uint32_t;
  static constexpr StreamId kLegacyStream = 0;

  // A stream of its own queue. A blocking one keeps order with the legacy default stream.
  StreamId add_stream(bool blocking);
  void remove_stream(StreamId stream);

  // Puts in what arrives at `arrival_ns` and lasts for `duration_ns`.
  Slot enqueue(StreamId stream, std::uint64_t arrival_ns, std::uint64_t duration_ns,
               Engine engine = Engine::kCompute);

  // Puts in many that wait for some of those before them, the first for the stream, which goes on
  // when all have ended. Gives the slot of the whole.
  struct Entry {
    std::uint64_t duration_ns = 0;
    Engine engine = Engine::kCompute;
    std::span<const std::size_t> after;
    std::uint64_t earliest_ns = 0;
    Slot slot;  // filled in
  };
  Slot enqueue(StreamId stream, std::uint64_t arrival_ns, std::span<Entry> entries);

  // The next in the stream starts no sooner than that.
  void wait(StreamId stream, std::uint64_t until_ns);

  // When all that is in the stream is done, no sooner than `now_ns`: what an event records.
  std::uint64_t mark(StreamId stream, std::uint64_t now_ns);

  // When the stream, or the whole device, is idle. May be past.
  std::uint64_t idle_at(StreamId stream) const;
  std::uint64_t idle_at() const;

 private:
  struct Stream {
    bool used = false;
    bool blocking = false;
    std::uint64_t tail_ns = 0;
  };
  std::uint64_t ready_at(StreamId stream) const;
  Slot place(std::uint64_t earliest_ns, std::uint64_t duration_ns, Engine engine);

  mutable std::mutex mutex_;
  std::vector<Stream> streams_{{.used = true, .blocking = false, .tail_ns = 0}};
  std::array<std::uint64_t, kEngineCount> engine_tail_ns_{};
  // Of streams that are gone; their work is not.
  std::uint64_t removed_tail_ns_ = 0;
  std::uint64_t removed_blocking_tail_ns_ = 0;
};

}  // namespace simgpu
