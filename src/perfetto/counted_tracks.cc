#include "perfetto/counted_tracks.h"

#include <perfetto.h>

#include <iterator>
#include <utility>

#include "perfetto/slice_strings.h"

namespace layertrace {

using perfetto::protos::pbzero::TrackEvent;

// The lane's sequence, begun if this is its first packet. Most of it is on the operators' track.
Sequence& CountedTracks::sequence(Lane lane) {
  if (sequences_.size() <= lane) sequences_.resize(std::size_t{lane} + 1);
  Sequence& sequence = sequences_[lane];
  if (std::exchange(sequence.started, true)) return sequence;
  sequence.id = format::counted_sequence(lane);
  sequence.track = format::operator_track(lane);
  auto* packet = packets_.add(sequence.id);
  packet->set_sequence_flags(PacketBlock::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
  auto* defaults = packet->set_trace_packet_defaults();
  defaults->set_timestamp_clock_id(format::kBoottimeClock);
  defaults->set_track_event_defaults()->set_track_uuid(sequence.track);
  tell_annotation_names(*packet, kCountedAnnotations);
  return sequence;
}

WideSliceEvent CountedTracks::instant(const Sequence& sequence, std::uint64_t ns,
                                      std::uint32_t name) {
  WideSliceEvent event(packets_.room_for<WideSliceEvent>(), ns, sequence.id,
                       TrackEvent::TYPE_INSTANT);
  if (name != 0) event.set_name_iid(name);
  return event;
}

void CountedTracks::annotate(WideSliceEvent& event, const OpAmounts& amounts) {
  const auto tell = [&](annotation::Id name, std::uint64_t value) {
    if (value != 0) event.annotate_uint(name, value);
  };
  event.annotate_uint(annotation::kFlops, amounts.flops);
  tell(annotation::kAuxFlops, amounts.aux_flops);
  if (amounts.flops_causal != amounts.flops)
    event.annotate_uint(annotation::kFlopsCausal, amounts.flops_causal);
  tell(annotation::kBytes, amounts.bytes);
  tell(annotation::kActivations, amounts.activations);
  tell(annotation::kFvcoreFlops, amounts.fvcore_flops);
  tell(annotation::kFvcoreActivations, amounts.fvcore_activations);
  if (amounts.format < std::size(format::kFormatNames))
    event.annotate_text(annotation::kFormat, format::kFormatNames[amounts.format]);
  if (amounts.is_uncounted) event.annotate_true(annotation::kUncounted);
  if (!amounts.is_call) event.annotate_true(annotation::kPartial);
}

void CountedTracks::amounts(Lane lane, const AmountsSpan& span) {
  Sequence& sequence = this->sequence(lane);
  SliceStrings strings(packets_, dictionary_, sequence);
  const NameId op = span.amounts.op;
  const std::uint32_t name = op != kNoName ? strings.name(op) : 0;
  const std::uint32_t category = strings.category(span.phase);
  const Owner owner = strings.owner(span.layer, span.cause);

  WideSliceEvent event = instant(sequence, span.ns, name);
  event.add_category_iid(category);
  owner.annotate(event);
  annotate(event, span.amounts);
  packets_.slice_done(event.finish());
}

void CountedTracks::shapes(Lane lane, const ShapesSpan& span) {
  Sequence& sequence = this->sequence(lane);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t name = strings.name(kShapesName, format::kShapes);
  const Owner owner = strings.owner(span.layer, Cause::kNone);
  const std::uint32_t shapes = strings.text(span.shapes);

  WideSliceEvent event = instant(sequence, span.ns, name);
  event.set_track_uuid(format::thread_track(lane));
  owner.annotate(event);
  event.annotate_string(span.is_output ? annotation::kOutput : annotation::kInput, shapes);
  packets_.slice_done(event.finish());
}

void CountedTracks::counting(Lane lane, const CountingSpan& span) {
  if (!std::exchange(has_counting_track_, true))
    packets_.describe_track(format::kCountingTrack, format::kProcessTrack, "counting");
  Sequence& sequence = this->sequence(lane);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t name = span.is_counted ? strings.name(kCountedName, format::kCountedStretch)
                                             : strings.name(kAlikeName, format::kAlikeStretch);

  WideSliceEvent event = instant(sequence, span.ns, name);
  event.set_track_uuid(format::kCountingTrack);
  event.annotate_uint(annotation::kKey, span.key);
  if (span.is_counted) event.annotate_true(annotation::kCounted);
  packets_.slice_done(event.finish());
}

void CountedTracks::describe_memory() {
  if (std::exchange(has_memory_track_, true)) return;
  packets_.describe_track(format::kMemoryTrack, format::kProcessTrack, "memory");
}

void CountedTracks::memory(Lane lane, const MemorySpan& span) {
  describe_memory();
  Sequence& sequence = this->sequence(lane);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t name = span.is_freed ? strings.name(kFreedName, format::kFreedBlock)
                                           : strings.name(kAllocatedName, format::kAllocatedBlock);
  const std::uint32_t category = strings.category(span.phase);
  const Owner owner = strings.owner(span.layer, Cause::kNone);

  WideSliceEvent event = instant(sequence, span.ns, name);
  event.set_track_uuid(format::kMemoryTrack);
  event.add_category_iid(category);
  owner.annotate(event);
  event.annotate_uint(annotation::kAddress, span.address);
  event.annotate_uint(annotation::kBytes, span.bytes);
  if (span.is_freed) event.annotate_true(annotation::kFreed);
  if (span.device != kHostDevice) event.annotate_uint(annotation::kDevice, span.device);
  packets_.slice_done(event.finish());
}

void CountedTracks::close_lane(Lane lane) {
  if (lane < sequences_.size()) sequences_[lane].forget_strings();
}

}  // namespace layertrace
