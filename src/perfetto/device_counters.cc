#include "perfetto/device_counters.h"

#include <perfetto.h>

#include "perfetto/format.h"

namespace layertrace {
namespace {

using perfetto::protos::pbzero::CounterDescriptor;
using perfetto::protos::pbzero::TrackEvent;

constexpr std::uint32_t kCounterSequence = format::loose_sequence(format::TrackKind::kCounters, 0);

}  // namespace

std::uint64_t DeviceCounters::track(std::uint32_t device, std::uint8_t number,
                                    const Description& description) {
  const std::uint64_t uuid = format::counter_track(device, number);
  if (!described_.insert(uuid).second) return uuid;
  const std::uint64_t group = device == kHostDevice ? format::kProcessTrack : groups_.track(device);
  auto* track = packets_.add(format::kDefinitionSequence)->set_track_descriptor();
  track->set_uuid(uuid);
  track->set_parent_uuid(group);
  track->set_name(description.name.data(), description.name.size());
  auto* counter = track->set_counter();
  if (description.unit.empty()) {
    counter->set_unit(CounterDescriptor::UNIT_SIZE_BYTES);
  } else {
    counter->set_unit_name(description.unit.data(), description.unit.size());
  }
  if (described_.size() == 1) {
    packets_.add(kCounterSequence)
        ->set_sequence_flags(PacketBlock::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
  }
  return uuid;
}

PacketBlock::TracePacket* DeviceCounters::packet(std::uint64_t ns) {
  auto* packet = packets_.add(kCounterSequence);
  packet->set_timestamp(ns);
  packet->set_timestamp_clock_id(format::kBoottimeClock);
  return packet;
}

void DeviceCounters::counter(const CounterSpan& sample) {
  const bool allocated = sample.counter == DeviceCounter::kMemoryAllocated;
  const std::uint64_t uuid =
      track(sample.device, static_cast<std::uint8_t>(sample.counter),
            {.name = allocated ? "memory allocated" : "memory reserved", .unit = ""});
  auto* event = packet(sample.ns)->set_track_event();
  event->set_type(TrackEvent::TYPE_COUNTER);
  event->set_track_uuid(uuid);
  event->set_counter_value(static_cast<std::int64_t>(sample.value));
}

void DeviceCounters::activity(const DeviceSpan& span) {
  const std::uint32_t device = span.what.device;
  auto load = loads_.find(device);
  if (load == loads_.end()) {
    const auto emit = [this, device](DeviceLoad::Figure figure, std::uint64_t ns, double value) {
      load_figure(device, figure, ns, value);
    };
    load = loads_.try_emplace(device, emit).first;
  }
  load->second.add(span.launch_ns != 0 ? span.launch_ns : span.start_ns, span.start_ns,
                   span.end_ns);
}

void DeviceCounters::load_figure(std::uint32_t device, DeviceLoad::Figure figure, std::uint64_t ns,
                                 double value) {
  const std::uint64_t uuid =
      figure == DeviceLoad::Figure::kBusy
          ? track(device, format::kBusyCounter, {.name = "busy", .unit = "%"})
          : track(device, format::kQueueCounter, {.name = "launch queue", .unit = "activities"});
  auto* event = packet(ns)->set_track_event();
  event->set_type(TrackEvent::TYPE_COUNTER);
  event->set_track_uuid(uuid);
  event->set_double_counter_value(value);
}

// A device's allocator tells by itself how much it has; this is what of it was counted.
void DeviceCounters::memory(const MemorySpan& span) {
  const bool is_host = span.device == kHostDevice;
  const std::uint64_t uuid = track(
      span.device, format::kHeldCounter,
      {.name = is_host ? "memory allocated (host)" : "memory allocated (counted)", .unit = ""});
  const std::uint64_t held_bytes = held_[span.device].add(span);
  auto* event = packet(span.ns)->set_track_event();
  event->set_type(TrackEvent::TYPE_COUNTER);
  event->set_track_uuid(uuid);
  event->set_counter_value(static_cast<std::int64_t>(held_bytes));
}

void DeviceCounters::finish() {
  for (auto& [device, load] : loads_) load.finish();
}

}  // namespace layertrace
