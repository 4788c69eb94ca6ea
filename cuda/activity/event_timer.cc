#include "activity/event_timer.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <utility>

#include "base/clock.h"

namespace layertrace::cuda {

struct EventTimer::Open {
  static constexpr std::size_t kMost = 256;
  const EventTimer* owner = nullptr;  // what another session left open is not ours
  std::size_t count = 0;
  std::uint32_t timed = 0;  // of these, how many have events
  std::array<Pair, kMost> pairs;
  // The last stream whose id was asked for.
  cudaStream_t named_stream = nullptr;
  std::uint32_t named_device = 0;
  std::uint32_t stream_id = 0;
  bool has_name = false;
};

// Elsewhere than in the thread's own block: that is small for a library that is loaded late.
// Nothing once the thread has let go of it: others end later than it.
EventTimer::Open* EventTimer::open_pairs() noexcept {
  constinit static thread_local bool is_over = false;
  struct Owner {
    const std::unique_ptr<Open> open{new (std::nothrow) Open};
    ~Owner() { is_over = true; }
  };
  if (is_over) return nullptr;
  thread_local const Owner owner;
  return owner.open.get();
}

EventTimer::EventTimer(const CudaRuntime& runtime, CurrentStream (*current_stream)() noexcept,
                       double ns_per_tick)
    : runtime_(runtime), current_stream_(current_stream), ticks_per_ns_(1 / ns_per_tick) {}

// The events are gone by now: here, perhaps while the program exits, CUDA may be gone, too.
EventTimer::~EventTimer() {
  for (std::atomic<Device*>& slot : devices_) delete slot.load();
}

void EventTimer::close() noexcept {
  closed_ = true;
  destroy_done();
  for (std::uint32_t i = 0; i < kMostDevices; ++i) {
    Device* known = devices_[i].load();
    // An event is destroyed on its own device: on another, CUDA would make a context for it.
    if (known == nullptr || !set_device(i)) continue;
    for (const Pair& waiting : known->waiting) {
      destroy(waiting.start);
      destroy(waiting.stop);
    }
    known->waiting.clear();
    if (known->timeline.reference != nullptr)
      destroy(std::exchange(known->timeline.reference, nullptr));
    cudaEvent_t event = nullptr;
    while (known->free.pop(event)) destroy(event);
  }
}

// The pairs that nobody will read.
void EventTimer::destroy_done() noexcept {
  Pair pair;
  while (done_.pop(pair)) {
    if (!set_device(pair.device)) continue;
    destroy(pair.start);
    destroy(pair.stop);
  }
}

bool EventTimer::set_device(std::uint32_t index) const noexcept {
  if (runtime_.set_device(static_cast<int>(index)) == cudaSuccess) return true;
  runtime_.get_last_error();
  return false;
}

void EventTimer::destroy(cudaEvent_t event) noexcept {
  if (runtime_.destroy_event(event) != cudaSuccess) runtime_.get_last_error();
}

// ---- On the program's threads ----

void EventTimer::begin_layer(LayerId layer, Phase phase, std::uint64_t frame) noexcept {
  Open* const pairs = open_pairs();
  if (pairs == nullptr) return;
  Open& open = *pairs;
  if (open.owner != this) {
    open.owner = this;
    open.count = 0;
    open.timed = 0;
    open.has_name = false;
  }
  if (open.count >= Open::kMost) {
    ++open.count;
    ++missed_;
    return;
  }
  Pair& pair = open.pairs[open.count++];
  pair = {.frame = frame, .layer = layer, .phase = phase, .depth = open.timed};
  if (start(pair, open)) ++open.timed;
}

void EventTimer::begin_region(NameId /*name*/, Phase /*phase*/) noexcept {
  Open* const open = open_pairs();
  if (open == nullptr || open->owner != this) return;
  if (open->count < Open::kMost) open->pairs[open->count] = {};
  ++open->count;
}

// False where the pair has no events: nothing is measured then.
bool EventTimer::start(Pair& pair, Open& open) noexcept {
  if (closed_) return false;
  const CurrentStream current = current_stream_();
  if (current.device < 0) return false;
  pair.device = static_cast<std::uint32_t>(current.device);
  pair.stream = static_cast<cudaStream_t>(current.stream);
  if (!is_current(pair.device)) {
    ++missed_;
    return false;
  }
  if (is_capturing(pair.stream)) {
    ++capturing_;
    return false;
  }
  Device* known = device(pair.device);
  pair.start = known != nullptr ? take_event(*known) : nullptr;
  pair.host_ticks = clock_ticks();
  if (pair.start != nullptr && record(pair.start, pair.stream)) {
    pair.stream_id = stream_id(pair, open);
    return true;
  }
  if (pair.start != nullptr) throw_away(*known, std::exchange(pair.start, nullptr));
  ++missed_;
  return false;
}

void EventTimer::end() noexcept {
  Open* const pairs = open_pairs();
  if (pairs == nullptr || pairs->owner != this || pairs->count == 0) return;
  Open& open = *pairs;
  --open.count;
  if (open.count >= Open::kMost) return;
  Pair& pair = open.pairs[open.count];
  if (pair.start == nullptr) return;
  --open.timed;
  if (closed_) return destroy(pair.start);
  Device& known = *device(pair.device);
  // On the stream where it began, so that the two can be compared. That may be captured by now; and
  // the default stream is another one if the thread has gone to another device.
  const bool may = is_current(pair.device) && !is_capturing(pair.stream);
  pair.stop = may ? take_event(known) : nullptr;
  const bool recorded = pair.stop != nullptr && record(pair.stop, pair.stream);
  if (recorded && done_.push(pair)) {
    if (closed_) [[unlikely]]
      destroy_done();  // who closed it may have looked before
    return;
  }
  ++missed_;
  give_back(known, pair.start);
  if (pair.stop == nullptr) return;
  if (recorded) {
    give_back(known, pair.stop);
  } else {
    throw_away(known, pair.stop);
  }
}

bool EventTimer::is_current(std::uint32_t device) const noexcept {
  int current = -1;
  if (runtime_.get_device(&current) == cudaSuccess) return std::cmp_equal(current, device);
  runtime_.get_last_error();
  return false;
}

// One that could not be recorded is perhaps of another device: it is not used again.
void EventTimer::throw_away(Device& device, cudaEvent_t event) noexcept {
  destroy(event);
  device.made.fetch_sub(1, std::memory_order_relaxed);
}

// While the stream is sure to be there. Mostly it is the same as the last time.
std::uint32_t EventTimer::stream_id(const Pair& pair, Open& open) noexcept {
  if (open.named_stream == pair.stream && open.named_device == pair.device && open.has_name)
    return open.stream_id;
  open.has_name = true;
  open.named_stream = pair.stream;
  open.named_device = pair.device;
  const auto id = name_stream_ != nullptr ? name_stream_(pair.stream) : std::nullopt;
  // Without a name: the default stream is 0, others are told apart by where they are.
  open.stream_id =
      id ? *id : static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pair.stream) >> 4);
  return open.stream_id;
}

// Or may be: the default stream cannot tell while a stream that waits for it is captured.
bool EventTimer::is_capturing(cudaStream_t stream) const noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (runtime_.is_capturing(stream, &status) == cudaSuccess)
    return status != cudaStreamCaptureStatusNone;
  runtime_.get_last_error();  // the error was ours
  return true;
}

EventTimer::Device* EventTimer::device(std::uint32_t index) noexcept {
  if (index >= kMostDevices) return nullptr;
  Device* known = devices_[index].load(std::memory_order_acquire);
  if (known != nullptr) [[likely]]
    return known;
  try {
    auto fresh = std::make_unique<Device>(kMostEvents);
    if (devices_[index].compare_exchange_strong(known, fresh.get())) return fresh.release();
    return known;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

cudaEvent_t EventTimer::take_event(Device& device) noexcept {
  cudaEvent_t event = nullptr;
  if (device.free.pop(event)) return event;
  if (device.made.fetch_add(1, std::memory_order_relaxed) < kMostEvents) {
    if (runtime_.create_event(&event, cudaEventDefault) == cudaSuccess) return event;
    runtime_.get_last_error();
  }
  device.made.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

void EventTimer::give_back(Device& device, cudaEvent_t event) noexcept {
  device.free.push(event);  // there is room for all that were made
}

// A failed call's error must not be found by the program, which did not make it.
bool EventTimer::record(cudaEvent_t event, cudaStream_t stream) noexcept {
  if (runtime_.record_event(event, stream) == cudaSuccess) return true;
  runtime_.get_last_error();
  return false;
}

// ---- On the writer's thread ----

void EventTimer::drain(DeviceConsumer& consumer, bool all) {
  Pair pair;
  while (done_.pop(pair)) device(pair.device)->waiting.push_back(pair);
  for (std::uint32_t i = 0; i < kMostDevices; ++i) {
    Device* known = devices_[i].load(std::memory_order_acquire);
    if (known != nullptr && !known->waiting.empty()) drain_device(i, *known, consumer, all);
  }
}

void EventTimer::drain_device(std::uint32_t index, Device& device, DeviceConsumer& consumer,
                              bool all) {
  constexpr int kMostNotReady = 8;  // one on each of a few streams; what follows on them waits, too
  if (!set_device(index)) return;
  std::deque<Pair> still_waiting;
  int not_ready = 0;
  while (!device.waiting.empty() && not_ready < kMostNotReady) {
    const Pair pair = device.waiting.front();
    device.waiting.pop_front();
    if (resolve(index, device, pair, consumer, all)) continue;
    still_waiting.push_back(pair);
    ++not_ready;
  }
  device.waiting.insert(device.waiting.begin(), still_waiting.begin(), still_waiting.end());
}

// False while the device has not come to it.
bool EventTimer::resolve(std::uint32_t index, Device& device, const Pair& pair,
                         DeviceConsumer& consumer, bool all) {
  const cudaError_t reached = runtime_.query_event(pair.stop);
  if (reached == cudaErrorNotReady && !all) {
    runtime_.get_last_error();
    return false;
  }
  float ms = 0;
  std::uint64_t start_ticks = 0;
  if (reached == cudaSuccess && runtime_.elapsed_ms(&ms, pair.start, pair.stop) == cudaSuccess &&
      place(device, pair, start_ticks)) {
    constexpr double kNsInMs = 1e6;
    const auto ticks = static_cast<std::uint64_t>(std::max(0.0, ms * kNsInMs * ticks_per_ns_));
    ++pairs_;
    consumer.event_pair({.start_ticks = start_ticks,
                         .end_ticks = start_ticks + ticks,
                         .host_ticks = pair.host_ticks,
                         .frame = pair.frame,
                         .layer = pair.layer,
                         .phase = pair.phase,
                         .device = index,
                         .stream = pair.stream_id,
                         .depth = pair.depth});
  } else {
    runtime_.get_last_error();
    ++missed_;
  }
  if (device.timeline.reference != pair.start) give_back(device, pair.start);
  give_back(device, pair.stop);
  return true;
}

bool EventTimer::place(Device& device, const Pair& pair, std::uint64_t& start_ticks) noexcept {
  constexpr double kNsInMs = 1e6;
  constexpr double kFar = 1e9;  // beyond a second, CUDA's float has too few digits
  Timeline& line = device.timeline;
  float ms = 0;
  if (line.reference == nullptr) {
    line.reference = pair.start;
  } else if (runtime_.elapsed_ms(&ms, line.reference, pair.start) != cudaSuccess) {
    return false;
  }
  const double since_ns = ms * kNsInMs;
  const auto at = static_cast<std::int64_t>((line.reference_ns + since_ns) * ticks_per_ns_);
  const std::int64_t behind = static_cast<std::int64_t>(pair.host_ticks) - at;
  if (!line.has_offset || behind > line.offset_ticks) line.offset_ticks = behind;
  if (!line.has_offset) line.last_offset_ticks = behind;
  line.has_offset = true;
  start_ticks =
      static_cast<std::uint64_t>(at + std::max(line.offset_ticks, line.last_offset_ticks));
  if (since_ns > kFar) {
    give_back(device, std::exchange(line.reference, pair.start));
    line.reference_ns += since_ns;
    line.last_offset_ticks = std::exchange(line.offset_ticks, behind);
  }
  return true;
}

void EventTimer::add_to(GpuHealth& health) const noexcept {
  health.events_missed = missed_.load();
  health.events_capturing = capturing_.load();
}

}  // namespace layertrace::cuda
