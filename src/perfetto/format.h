// How spans are laid out in a Perfetto trace. What the writer puts where, the reader finds there;
// docs/trace-format.md says the same for people.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include <layertrace/profile.h>
#include <layertrace/trace.h>

#include "record/amounts.h"
#include "record/device_record.h"

namespace layertrace::format {

// Raised when a reader of the old format would misread the new one. A newer file is refused, an
// older one read.
inline constexpr int kVersion = kFormatVersion;

// Packet sequences: one for definitions, two for each lane (scopes and activities), so that each
// has its own incremental clock, interned strings and default track.
inline constexpr std::uint32_t kDefinitionSequence = 1;
inline constexpr std::uint32_t kFirstLaneSequence = 2;
constexpr std::uint32_t scope_sequence(std::uint32_t lane) { return kFirstLaneSequence + 2 * lane; }
constexpr std::uint32_t activity_sequence(std::uint32_t lane) {
  return kFirstLaneSequence + 2 * lane + 1;
}

// Then one for each track whose packets come in no order, by kind, in the order of their
// descriptors. They have times of the trace's clock.
enum class TrackKind : std::uint8_t {
  kActivities = 1,
  kGroup,
  kCalls,
  kLayers,
  kCounters,
  kCounted
};
inline constexpr std::uint32_t kFirstLooseSequence = 1U << 24;
constexpr std::uint32_t loose_sequence(TrackKind kind, std::uint32_t number) {
  return static_cast<std::uint32_t>(kind) << 24 | number;
}
constexpr TrackKind kind_of_sequence(std::uint32_t sequence) {
  return static_cast<TrackKind>(sequence >> 24);
}
constexpr std::uint32_t number_of_sequence(std::uint32_t sequence) { return sequence & 0xffffffU; }
// What was counted on a lane and is no part of a slice, on whichever track it is drawn. A lane's
// own sequences have clocks that only go forwards: an operator may be told after what ran inside
// it.
constexpr std::uint32_t counted_sequence(std::uint32_t lane) {
  return loose_sequence(TrackKind::kCounted, lane);
}

// Track ids. Those of a lane follow its sequences'.
inline constexpr std::uint64_t kProcessTrack = 1;
inline constexpr std::uint64_t kStepTrack = 2;
inline constexpr std::uint64_t kLayerTrack = 3;
inline constexpr std::uint64_t kRunTrack = 4;
inline constexpr std::uint64_t kMemoryTrack = 5;
inline constexpr std::uint64_t kParameterTrack = 6;
inline constexpr std::uint64_t kCountingTrack = 7;
inline constexpr std::uint64_t kMetricTrack = 8;
inline constexpr std::uint64_t kFirstLaneTrack = 16;
constexpr std::uint64_t thread_track(std::uint32_t lane) {
  return kFirstLaneTrack + 2 * std::uint64_t{lane};
}
constexpr std::uint64_t operator_track(std::uint32_t lane) { return thread_track(lane) + 1; }

// Those of such tracks begin with their kind. In a device's group there is one for each stream;
// where slices of a track would overlap there are more of it, numbered as siblings.
inline constexpr std::size_t kMostSiblings = 256;
constexpr std::uint64_t track_id(TrackKind kind, std::uint64_t rest) {
  return std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 | rest;
}
constexpr TrackKind kind_of_track(std::uint64_t track) {
  return static_cast<TrackKind>(track >> 56);
}
constexpr std::uint64_t device_group(std::uint32_t device) {
  return track_id(TrackKind::kGroup, device);
}
constexpr std::uint64_t stream_track(std::uint32_t device, std::uint32_t stream,
                                     std::uint32_t sibling) {
  return track_id(TrackKind::kActivities, std::uint64_t{device & 0xffU} << 40 |
                                              std::uint64_t{stream} << 8 | (sibling & 0xffU));
}
// The calls of a thread; a stream's layers, by how deep they are.
constexpr std::uint64_t call_track(std::uint32_t tid, std::uint32_t sibling) {
  return track_id(TrackKind::kCalls, std::uint64_t{tid} << 8 | (sibling & 0xffU));
}
constexpr std::uint64_t layer_track(std::uint32_t device, std::uint32_t stream, std::uint32_t depth,
                                    std::uint32_t sibling) {
  return track_id(TrackKind::kLayers,
                  std::uint64_t{sibling & 0xffU} << 48 | std::uint64_t{device & 0xffU} << 40 |
                      std::uint64_t{stream} << 8 | (depth < 0xffU ? depth : 0xffU));
}
// A device's counters, all on one sequence: the measured ones by their own numbers, then those that
// are made from the slices, or from blocks of memory, and not read back.
inline constexpr std::uint8_t kBusyCounter = 16;
inline constexpr std::uint8_t kQueueCounter = 17;
inline constexpr std::uint8_t kHeldCounter = 18;
constexpr std::uint64_t counter_track(std::uint32_t device, std::uint8_t number) {
  return track_id(TrackKind::kCounters, std::uint64_t{device & 0xffU} << 40 | number);
}
constexpr std::uint8_t number_of_counter(std::uint64_t track) {
  return static_cast<std::uint8_t>(track);
}
constexpr std::uint32_t tid_of_track(std::uint64_t track) {
  return static_cast<std::uint32_t>(track >> 8);
}
constexpr std::uint32_t device_of_track(std::uint64_t track) {
  return static_cast<std::uint32_t>(track >> 40) & 0xffU;
}
constexpr std::uint32_t stream_of_track(std::uint64_t track) {
  return static_cast<std::uint32_t>(track >> 8);
}

// Clocks: the sequence's own, counting up from its last packet, the trace's, and the system's
// others in the snapshots that tie them to it.
inline constexpr std::uint32_t kIncrementalClock = 64;
inline constexpr std::uint32_t kBoottimeClock = 6;
inline constexpr std::uint32_t kMonotonicRawClock = 5;
inline constexpr std::uint32_t kMonotonicClock = 3;
inline constexpr std::uint32_t kRealtimeClock = 1;

// Names of debug annotations on slices.
inline constexpr std::string_view kPath = "path";
inline constexpr std::string_view kSequence = "seq";  // of an autograd node
inline constexpr std::string_view kAccumulates =
    "accumulates";  // a node that adds into a parameter's gradient
inline constexpr std::string_view kRegion = "region";              // a region rather than a module
inline constexpr std::string_view kUnattributed = "unattributed";  // why there is no path
inline constexpr std::string_view kInferred = "inferred";          // why it has this path
inline constexpr std::string_view kEndedBy = "ended_by";           // "exception" or "cut"
inline constexpr std::string_view kWindow =
    "window";  // on a step: recording starts here; on a pause: the step that is not recorded
inline constexpr std::string_view kPartial =
    "partial";  // on a step's end: it did not end; on amounts: the rest of a call's
inline constexpr std::string_view kDropped = "dropped";
inline constexpr std::string_view kStep = "step";  // on a step: its index
// On an operator: what it computed and moved. Where there are any, the first is there.
inline constexpr std::string_view kFlops = "flops";
inline constexpr std::string_view kAuxFlops = "aux_flops";
inline constexpr std::string_view kFlopsCausal = "flops_causal";  // where they are others
inline constexpr std::string_view kBytes = "bytes";  // also of a copy, a set, a block of memory
inline constexpr std::string_view kActivations = "activations";
inline constexpr std::string_view kFvcoreFlops = "fvcore_flops";
inline constexpr std::string_view kFvcoreActivations = "fvcore_activations";
inline constexpr std::string_view kMacs = "macs";
inline constexpr std::string_view kFormat = "format";
inline constexpr std::string_view kUncounted = "uncounted";  // there is no formula for this call
// On a module's call: the shapes of what went in and came out.
inline constexpr std::string_view kInput = "input";
inline constexpr std::string_view kOutput = "output";
// On the beginning of a stretch that is like others.
inline constexpr std::string_view kKey = "key";
inline constexpr std::string_view kCounted = "counted";  // its operators are
// On a block of memory.
inline constexpr std::string_view kAddress = "address";
inline constexpr std::string_view kFreed = "freed";
inline constexpr std::string_view kDevice = "device";  // none for the host's memory
// On what a device did.
inline constexpr std::string_view kKind =
    "kind";  // "copy" or "set"; kernels have none. Of a call: "ask", "copy" or "wait"
inline constexpr std::string_view kGrid = "grid";
inline constexpr std::string_view kBlock = "block";
inline constexpr std::string_view kRegisters = "registers";
inline constexpr std::string_view kSharedBytes = "shared_bytes";
inline constexpr std::string_view kCorrelation = "correlation";
inline constexpr std::string_view kLaunch = "launch_ns";  // on the trace's clock
inline constexpr std::string_view kLaunchThread = "launch_tid";
inline constexpr std::string_view kGraphNode = "graph_node";
inline constexpr std::string_view kOccupancy = "occupancy";  // in percent
inline constexpr std::string_view kContext = "context";
inline constexpr std::string_view kEarly = "early";  // begins before it was asked for
// On the time that a layer took on a stream.
inline constexpr std::string_view kHost = "host_ns";  // when the host entered it
inline constexpr std::string_view kDepth = "depth";

// Flows: a module's call has its number, and leads to its backward and to what it asked a device
// for; a call to a device has its correlation, and leads to what it asked for.
inline constexpr std::uint64_t kCorrelationFlows = std::uint64_t{1} << 63;

// A share in percent, and back without loss: a double has digits to spare.
constexpr double to_percent(float share) { return 100.0 * static_cast<double>(share); }
constexpr float from_percent(double percent) { return static_cast<float>(percent / 100.0); }

constexpr std::string_view kind_name(DeviceKind kind) {
  return kind == DeviceKind::kCopy ? "copy" : kind == DeviceKind::kSet ? "set" : "kernel";
}
constexpr DeviceKind device_kind(std::string_view name) {
  return name == "copy"  ? DeviceKind::kCopy
         : name == "set" ? DeviceKind::kSet
                         : DeviceKind::kKernel;
}

constexpr std::string_view kind_name(CallKind kind) {
  return kind == CallKind::kCopy ? "copy" : kind == CallKind::kWait ? "wait" : "ask";
}
constexpr CallKind call_kind(std::string_view name) {
  return name == "copy" ? CallKind::kCopy : name == "wait" ? CallKind::kWait : CallKind::kAsk;
}

// Number formats, by their numbers; others have no name.
inline constexpr std::string_view kFormatNames[] = {"fp64", "fp32", "tf32", "fp16",
                                                    "bf16", "fp8",  "int8", "fp4"};
static_assert(std::size(kFormatNames) == kOtherFormat);
constexpr std::uint8_t number_format(std::string_view name) {
  return static_cast<std::uint8_t>(std::ranges::find(kFormatNames, name) -
                                   std::begin(kFormatNames));
}

// Categories: a phase's name, or kStep. This is the latter's number after the phases'.
inline constexpr std::uint8_t kStepCategory = kPhaseCount;

// Names of instants.
inline constexpr std::string_view kHeader = "layertrace";
inline constexpr std::string_view kFooter = "layertrace end";
inline constexpr std::string_view kPause = "recording paused";
inline constexpr std::string_view kGap = "records dropped";
inline constexpr std::string_view kCountedStretch = "counted";
inline constexpr std::string_view kAlikeStretch = "as counted before";
inline constexpr std::string_view kAllocatedBlock = "allocated";
inline constexpr std::string_view kFreedBlock = "freed";
inline constexpr std::string_view kShapes = "shapes";

}  // namespace layertrace::format
