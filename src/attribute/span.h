// Spans: records, resolved. Each belongs to a lane (a thread), lies on one of the lane's two
// tracks, and knows its layer and phase. They come as begins and ends, properly nested on their
// track, in time order within a lane, from attribution while a program runs or from a file that is
// read back; the profile and the trace are made from the same stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <layertrace/profile.h>

#include "record/amounts.h"
#include "record/definitions.h"
#include "record/device_record.h"
#include "record/drain.h"
#include "record/ids.h"

namespace layertrace {

enum class SpanKind : std::uint8_t {
  kScope,     // a module's forward
  kBackward,  // a run of consecutive autograd nodes of one forward call
  kNode,      // an autograd node, inside the above where it has an owner
  kRegion,    // a user's scope, or a stretch that layertrace knows (loss, backward, optimizer)
  kActivity,  // an operator that did work of its own
};

enum class Track : std::uint8_t { kScopes, kActivities };

constexpr Track track_of(SpanKind kind) noexcept {
  return kind == SpanKind::kActivity ? Track::kActivities : Track::kScopes;
}

// Why an activity or a node has no layer.
enum class Cause : std::uint8_t {
  kNone,  // it has one, or it belongs to a phase of its own (loss, optimizer, data, communication)
  kNoScope,        // an operator outside any module and any known phase
  kThreadNoScope,  // likewise, on a thread that had not entered a module yet
  kMadeOutside,    // a node that no module made
  kMadeBefore,     // a node made before the recording began
  kForgotten,      // a node whose forward call is too long ago to be remembered
  kUnknownThread,  // a node made by a thread that was not recorded
  kForeignLeaf,    // accumulates into a tensor that no registered module owns
  kBetweenNodes,   // an operator of the autograd engine itself
  kAfterLayers,    // after the last layer of a module without a scope: its own, or the loss's
  kInferred,      // it has a layer, by inference: the lowest that holds the layers before and after
  kNoLaunch,      // what a device did, asked for by a call that was not recorded
  kOldScope,      // likewise, asked for in a scope that is too long ago to be remembered
  kEarlierGraph,  // of a CUDA graph that was captured while nothing was recorded: it has the layer
                  // that launched the graph, if one did
  kNoCorrelation,      // what a device did, with nothing that ties it to a call
  kBeforeWindow,       // likewise, asked for before the recording began
  kSharedCorrelation,  // likewise, with the correlation id of something else
};
inline constexpr std::size_t kCauseCount = 17;

// A sentence for people: "the node was made outside any module".
std::string_view cause_text(Cause cause) noexcept;

enum class EndedBy : std::uint8_t { kExit, kException, kCut };

struct SpanBegin {
  std::uint64_t start_ns = 0;
  SpanKind kind = SpanKind::kScope;
  Phase phase = Phase::kOther;
  Cause cause = Cause::kNone;
  bool accumulates = false;  // a node that adds into a parameter's gradient
  LayerId layer = kNoLayer;
  NameId name = kNoName;       // of a node, region or activity; scopes are named by their layer
  std::uint64_t call = 0;      // ties a forward scope to its backward spans; 0 for none
  std::uint64_t sequence = 0;  // a node's number + 1; 0 for none
};

// What a device did, and for whom.
struct DeviceSpan {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t launch_ns = 0;   // when the host asked for it; 0 if that was not recorded
  std::uint32_t launch_tid = 0;  // on which of the system's threads
  Phase phase = Phase::kOther;
  Cause cause = Cause::kNone;
  LayerId layer = kNoLayer;
  std::uint64_t call = 0;  // as of a span on the host
  DeviceActivity what;     // but for its times, which are ticks
};

// A call on the host that asked a device for something, or waited for it.
struct LaunchSpan {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint32_t tid = 0;  // the system's number of the thread
  std::uint32_t correlation = 0;
  NameId name = kNoName;
  CallKind kind = CallKind::kAsk;
  Phase phase = Phase::kOther;
  LayerId layer = kNoLayer;
};

// How long a layer's call, or its backward, took on a stream: from the moment the stream came to
// its beginning to the one it came to its end.
struct EventSpan {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t host_ns = 0;  // when the host entered it
  Phase phase = Phase::kOther;
  LayerId layer = kNoLayer;
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
  std::uint32_t depth = 0;  // how many are around it
};

// A figure of a device at a moment.
struct CounterSpan {
  std::uint64_t ns = 0;
  std::uint64_t value = 0;
  std::uint32_t device = 0;
  DeviceCounter counter = DeviceCounter::kMemoryAllocated;
};

// What an operator computed and moved. Several for one operator add up.
struct AmountsSpan {
  std::uint64_t ns = 0;
  Phase phase = Phase::kOther;
  Cause cause = Cause::kNone;
  LayerId layer = kNoLayer;
  OpAmounts amounts;
};

// What went into the lane's innermost module call, or came out of it.
struct ShapesSpan {
  std::uint64_t ns = 0;
  LayerId layer = kNoLayer;
  NameId shapes = kNoName;
  bool is_output = false;
};

// From here to the next of these, or to the step's end, things are alike wherever the key is.
struct CountingSpan {
  std::uint64_t ns = 0;
  std::uint64_t key = 0;
  bool is_counted = false;
};

// A block of memory was taken or given back.
struct MemorySpan {
  std::uint64_t ns = 0;
  Phase phase = Phase::kOther;
  LayerId layer = kNoLayer;
  std::uint32_t device = kHostDevice;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  bool is_freed = false;
};

class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void open_lane(Lane lane, std::uint64_t tid, const std::string& name) = 0;
  // The lane's thread has ended; nothing more will come.
  virtual void close_lane(Lane /*lane*/) {}
  virtual void begin(Lane lane, const SpanBegin& span) = 0;
  virtual void end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) = 0;
  // Recording starts (or stops) here; `step` is the step that begins.
  virtual void window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) = 0;
  // The step with this index ends here.
  virtual void step(Lane lane, std::uint64_t ns, std::uint64_t index) = 0;
  // So many records of the lane were dropped just before this time.
  virtual void gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) = 0;
  // Before the end of what they are about.
  virtual void amounts(Lane /*lane*/, const AmountsSpan& /*span*/) {}
  virtual void shapes(Lane /*lane*/, const ShapesSpan& /*span*/) {}
  virtual void counting(Lane /*lane*/, const CountingSpan& /*span*/) {}
  virtual void memory(Lane /*lane*/, const MemorySpan& /*span*/) {}
  // Activities are what a device of this name did. Before the first span.
  virtual void use_device(const std::string& /*name*/) {}
  // The steps are another's marks: what lies outside all of them counts among the activities, too,
  // if in no layer's figures. Before the first span.
  virtual void count_outside_steps() {}
  // All that follows comes in no particular order; after the spans on the host that were open at
  // its launch, and a launch before what it asked for.
  virtual void device(const DeviceSpan& /*span*/) {}
  virtual void launch(const LaunchSpan& /*span*/) {}
  virtual void event_pair(const EventSpan& /*span*/) {}
  virtual void counter(const CounterSpan& /*sample*/) {}
};

// What the ids in spans stand for, on the reading side. Grows only.
struct Dictionary {
  std::vector<LayerDef> layers;
  std::vector<ParameterDef> parameters;
  std::vector<std::string> names;
};

}  // namespace layertrace
