// A packet sequence as the writer sees it: its clock, and which strings it has told of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/profile.h>

#include "perfetto/format.h"

namespace layertrace {

// Ids of interned strings within one packet sequence: dense, in order of first use, so that they
// are short.
class Interned {
 public:
  // The id, and whether it is new here.
  std::pair<std::uint32_t, bool> id(std::size_t key) {
    if (key >= ids_.size()) ids_.resize(key + 1 + key / 2);
    const bool fresh = ids_[key] == 0;
    if (fresh) ids_[key] = ++last_;
    return {ids_[key], fresh};
  }

 private:
  std::vector<std::uint32_t> ids_;
  std::uint32_t last_ = 0;
};

// Annotation names have fixed ids, defined with a sequence's first packet.
namespace annotation {
enum Id : std::uint8_t {
  kUnknown,  // to this version
  kPath,
  kSequence,
  kAccumulates,
  kRegion,
  kUnattributed,
  kEndedBy,
  kWindow,
  kPartial,
  kDropped,
  kInferred,
  kStep,
  kFlops,
  kAuxFlops,
  kFlopsCausal,
  kBytes,
  kActivations,
  kFvcoreFlops,
  kFvcoreActivations,
  kMacs,
  kFormat,
  kUncounted,
  kInput,
  kOutput,
  kKey,
  kCounted,
  kAddress,
  kFreed,
  kDevice,
  kKind,
  kGrid,
  kBlock,
  kRegisters,
  kSharedBytes,
  kCorrelation,
  kLaunch,
  kLaunchThread,
  kGraphNode,
  kOccupancy,
  kContext,
  kHost,
  kDepth,
  kEarly
};
}  // namespace annotation
inline constexpr std::string_view kAnnotationNames[] = {
    format::kPath,        format::kSequence,     format::kAccumulates,
    format::kRegion,      format::kUnattributed, format::kEndedBy,
    format::kWindow,      format::kPartial,      format::kDropped,
    format::kInferred,    format::kStep,         format::kFlops,
    format::kAuxFlops,    format::kFlopsCausal,  format::kBytes,
    format::kActivations, format::kFvcoreFlops,  format::kFvcoreActivations,
    format::kMacs,        format::kFormat,       format::kUncounted,
    format::kInput,       format::kOutput,       format::kKey,
    format::kCounted,     format::kAddress,      format::kFreed,
    format::kDevice,      format::kKind,         format::kGrid,
    format::kBlock,       format::kRegisters,    format::kSharedBytes,
    format::kCorrelation, format::kLaunch,       format::kLaunchThread,
    format::kGraphNode,   format::kOccupancy,    format::kContext,
    format::kHost,        format::kDepth,        format::kEarly,
};
static_assert(std::size(kAnnotationNames) == annotation::kEarly);
// Those that slices on a host's thread may have; a device's may have all.
inline constexpr std::size_t kHostAnnotations = annotation::kOutput;
// Those that what was counted may have.
inline constexpr std::size_t kCountedAnnotations = annotation::kDevice;

// Event names that are not in the dictionary.
enum FixedName : std::uint8_t {
  kLossName,
  kGapName,
  kPauseName,
  kCountedName,
  kAlikeName,
  kAllocatedName,
  kFreedName,
  kShapesName,
  kFixedNames
};
// Categories: the phases, then these.
inline constexpr std::size_t kLostCategory = kPhaseCount + 1;

struct Sequence {
  std::uint32_t id = 0;
  std::uint64_t track = 0;
  bool started = false;
  std::uint64_t last_ns = 0;
  Interned event_names;  // names · 2, layers · 2 + 1, offset by the fixed ones
  Interned categories;
  Interned strings;  // paths by layer · 2, names · 2 + 1, offset by the causes

  // No more packets of this sequence will use them.
  void forget_strings() { event_names = categories = strings = {}; }
};

}  // namespace layertrace
