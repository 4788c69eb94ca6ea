#include "core/timeline.h"

#include <algorithm>

namespace simgpu {

Timeline::StreamId Timeline::add_stream(bool blocking) {
  const std::lock_guard lock(mutex_);
  const auto free =
      std::find_if(streams_.begin(), streams_.end(), [](const Stream& s) { return !s.used; });
  const Stream fresh{.used = true, .blocking = blocking, .tail_ns = 0};
  if (free != streams_.end()) {
    *free = fresh;
    return static_cast<StreamId>(free - streams_.begin());
  }
  streams_.push_back(fresh);
  return static_cast<StreamId>(streams_.size() - 1);
}

void Timeline::remove_stream(StreamId stream) {
  const std::lock_guard lock(mutex_);
  removed_tail_ns_ = std::max(removed_tail_ns_, streams_[stream].tail_ns);
  if (streams_[stream].blocking)
    removed_blocking_tail_ns_ = std::max(removed_blocking_tail_ns_, streams_[stream].tail_ns);
  streams_[stream] = {};
}

// The end of all that comes before the stream's next.
std::uint64_t Timeline::ready_at(StreamId stream) const {
  std::uint64_t ready_ns = streams_[stream].tail_ns;
  if (stream == kLegacyStream) {
    ready_ns = std::max(ready_ns, removed_blocking_tail_ns_);
    for (const Stream& other : streams_) {
      if (other.blocking) ready_ns = std::max(ready_ns, other.tail_ns);
    }
  } else if (streams_[stream].blocking) {
    ready_ns = std::max(ready_ns, streams_[kLegacyStream].tail_ns);
  }
  return ready_ns;
}

Slot Timeline::place(std::uint64_t earliest_ns, std::uint64_t duration_ns, Engine engine) {
  Slot slot{earliest_ns, 0};
  std::uint64_t& engine_tail_ns = engine_tail_ns_[static_cast<std::size_t>(engine)];
  if (engine != Engine::kCompute) slot.start_ns = std::max(slot.start_ns, engine_tail_ns);
  slot.end_ns = slot.start_ns + duration_ns;
  engine_tail_ns = std::max(engine_tail_ns, slot.end_ns);
  return slot;
}

Slot Timeline::enqueue(StreamId stream, std::uint64_t arrival_ns, std::uint64_t duration_ns,
                       Engine engine) {
  const std::lock_guard lock(mutex_);
  const Slot slot = place(std::max(arrival_ns, ready_at(stream)), duration_ns, engine);
  streams_[stream].tail_ns = slot.end_ns;
  return slot;
}

Slot Timeline::enqueue(StreamId stream, std::uint64_t arrival_ns, std::span<Entry> entries) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t begin_ns = std::max(arrival_ns, ready_at(stream));
  Slot whole{begin_ns, begin_ns};
  for (Entry& entry : entries) {
    std::uint64_t earliest_ns = std::max(begin_ns, entry.earliest_ns);
    for (const std::size_t each : entry.after)
      earliest_ns = std::max(earliest_ns, entries[each].slot.end_ns);
    // What takes no time needs no engine.
    entry.slot = entry.duration_ns != 0 ? place(earliest_ns, entry.duration_ns, entry.engine)
                                        : Slot{earliest_ns, earliest_ns};
    whole.end_ns = std::max(whole.end_ns, entry.slot.end_ns);
  }
  streams_[stream].tail_ns = whole.end_ns;
  return whole;
}

void Timeline::wait(StreamId stream, std::uint64_t until_ns) {
  const std::lock_guard lock(mutex_);
  std::uint64_t& tail_ns = streams_[stream].tail_ns;
  tail_ns = std::max(tail_ns, until_ns);
}

std::uint64_t Timeline::mark(StreamId stream, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  return std::max(now_ns, ready_at(stream));
}

std::uint64_t Timeline::idle_at(StreamId stream) const {
  const std::lock_guard lock(mutex_);
  return ready_at(stream);
}

std::uint64_t Timeline::idle_at() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t idle_ns = removed_tail_ns_;
  for (const Stream& stream : streams_) idle_ns = std::max(idle_ns, stream.tail_ns);
  return idle_ns;
}

}  // namespace simgpu
