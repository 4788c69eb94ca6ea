// How spans are laid out in a Perfetto trace. What the writer puts where, the reader finds there;
// docs/trace-format.md says the same for people.
#pragma once

#include <cstdint>
#include <string_view>

#include <layertrace/profile.h>
#include <layertrace/trace.h>

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

// Track ids. Those of a lane follow its sequences'.
inline constexpr std::uint64_t kProcessTrack = 1;
inline constexpr std::uint64_t kStepTrack = 2;
inline constexpr std::uint64_t kLayerTrack = 3;
inline constexpr std::uint64_t kRunTrack = 4;
inline constexpr std::uint64_t kFirstLaneTrack = 16;

// Clocks: the sequence's own, counting up from its last packet, and the trace's.
inline constexpr std::uint32_t kIncrementalClock = 64;
inline constexpr std::uint32_t kBoottimeClock = 6;

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
inline constexpr std::string_view kPartial = "partial";  // on a step's end: it did not end
inline constexpr std::string_view kDropped = "dropped";
inline constexpr std::string_view kStep = "step";  // on a step: its index

// Categories: a phase's name, or kStep. This is the latter's number after the phases'.
inline constexpr std::uint8_t kStepCategory = kPhaseCount;

// Names of instants.
inline constexpr std::string_view kHeader = "layertrace";
inline constexpr std::string_view kFooter = "layertrace end";
inline constexpr std::string_view kPause = "recording paused";
inline constexpr std::string_view kGap = "records dropped";

}  // namespace layertrace::format
