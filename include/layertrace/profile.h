// Profile: the answer. Plain data: the layers of a model with their time per phase, the steps, and
// what is missing.
//
// A Profile is made by Session::stop() or by load(), and read by tree(), layers_json() or your own
// code:
//
//   for (const layertrace::Layer& layer : profile.layers) {
//     const auto& forward = layer.phase(layertrace::Phase::kForward);
//     std::cout << layer.path << ' ' << forward.host_ns.mean << " ns\n";
//   }
//
// All figures are per recorded step. A Profile owns its data, refers to nothing, and may be copied
// and moved freely.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/result.h>

namespace layertrace {

// What a stretch of a training step is for.
enum class Phase : std::uint8_t {
  kForward,        // inside a module's forward
  kLoss,           // between the root's forward and the backward
  kBackward,       // autograd's nodes
  kRecompute,      // a module's forward, run again inside the backward (checkpointing)
  kOptimizer,      // an optimizer's step or zero_grad
  kCommunication,  // a user's scope named "communication"
  kData,           // a user's scope named "data"
  kOther,          // everything else
};
inline constexpr std::size_t kPhaseCount = 8;

// "forward", "loss", … as in the JSON output and in the trace's categories.
LAYERTRACE_API std::string_view phase_name(Phase phase) noexcept;

// One figure over the recorded steps. A step in which it did not occur counts as 0. `stdev` is the
// sample's (n − 1). With more than 256 recorded steps (fewer where there are thousands of layers)
// `median` is taken over an even subset of them; the others are exact.
struct Stat {
  double mean = 0;
  double min = 0;
  double max = 0;
  double median = 0;
  double stdev = 0;
};

// A layer's figures in one phase, children included unless the name says self.
struct PhaseStats {
  Stat calls;    // scopes (forward: module calls; backward: runs of consecutive autograd nodes)
  Stat host_ns;  // wall time on the host between entry and exit
  Stat self_host_ns;  // the same without the scopes inside
  Stat activities;    // operators (on a GPU: kernels, copies, sets)
  Stat activity_ns;   // their times added up; time inside a nested activity is counted once, there
  Stat self_activity_ns;  // the same without children's
  Stat busy_ns;           // the union of their intervals: overlapping activities count once
  // Of a GPU.
  Stat launches;  // calls on the host that asked for activities
  Stat event_ns;  // time on the stream by CUDA events; several streams' added up
  Stat idle_ns;   // while the host was inside, and the device had nothing to do

  bool empty() const noexcept {
    return calls.max == 0 && host_ns.max == 0 && activities.max == 0 && launches.max == 0 &&
           event_ns.max == 0 && idle_ns.max == 0;
  }
};

// A node of the result tree, named by its nn.Module path.
struct Layer {
  std::string path;  // dotted, "" for the root
  std::string name;  // the last component; the root's class for the root
  std::string type;  // "Linear", "Net"
  int parent = -1;   // index into Profile::layers, −1 for a root
  std::vector<int> children;
  double calls = 0;         // module calls per step, forward and recompute
  bool ran = false;         // it, or something below it, ran while recording
  bool registered = true;   // false: not part of the model's tree; seen when it was called
  std::string shared_with;  // the first path of the same module, where it has several
  std::array<PhaseStats, kPhaseCount> phases;

  const PhaseStats& phase(Phase p) const { return phases[static_cast<std::size_t>(p)]; }
};

// What one GPU did while a step lasted, whoever had asked for it.
struct DeviceStep {
  std::uint32_t device = 0;
  std::uint64_t busy_ns = 0;
  std::uint64_t idle_ns = 0;          // the rest of the step
  std::uint64_t exposed_copy_ns = 0;  // copies and sets, while no kernel ran

  friend bool operator==(const DeviceStep&, const DeviceStep&) = default;
};

// Why a GPU had nothing to do.
enum class IdleCause : std::uint8_t {
  kLaunch,           // the host was on its way to ask for more
  kSynchronisation,  // the host was waiting for the device
  kCopy,             // the host was copying, or the next to come was a copy
  kData,             // the host was loading data
};
inline constexpr std::size_t kIdleCauseCount = 4;

// "launch", "synchronisation", "copy", "data".
LAYERTRACE_API std::string_view idle_cause_name(IdleCause cause) noexcept;

// Idle time of GPUs, by where the host was. In the recorded steps, per step.
struct Idle {
  int layer = -1;  // index into Profile::layers, −1 outside any
  Phase phase = Phase::kOther;
  IdleCause cause = IdleCause::kLaunch;
  double ns = 0;
  double gaps = 0;  // stretches of idle time that fell into it, in part or as a whole
};

// One kernel (or kind of copy) of a GPU, with what is known of its launches. In all recorded steps.
struct Kernel {
  // Whom it serves.
  struct Use {
    int layer = -1;  // index into Profile::layers, −1 outside any
    Phase phase = Phase::kOther;
    std::uint64_t count = 0;
    std::uint64_t ns = 0;
    std::uint64_t min_ns = 0;
    std::uint64_t max_ns = 0;
    std::uint64_t bytes = 0;
  };
  std::string name;        // demangled, whole
  std::string short_name;  // without namespaces and arguments
  std::string kind;        // "kernel", "copy", "set"
  std::uint64_t count = 0;
  std::uint64_t ns = 0;  // their times added up
  std::uint64_t min_ns = 0;
  std::uint64_t max_ns = 0;
  std::uint64_t bytes = 0;  // of copies and sets, added up
  // Of its longest launch.
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
  std::uint32_t registers = 0;
  std::uint32_t shared_bytes = 0;
  double occupancy = 0;   // in 0…1, as far as registers, shared memory and the block's size allow
  std::vector<Use> uses;  // the longest first
};

struct Step {
  std::uint64_t index = 0;     // counted from the session's start, recorded or not
  std::uint64_t start_ns = 0;  // on the trace's clock
  std::uint64_t wall_ns = 0;
  std::array<std::uint64_t, kPhaseCount>
      phase_ns{};                   // the step's wall time by phase, on the thread that steps
  std::vector<DeviceStep> devices;  // those that did anything while recording
};

// Why some activities or autograd nodes have no layer.
struct Unattributed {
  struct Name {
    std::string name;
    std::uint64_t count = 0;
  };
  std::string cause;
  std::uint64_t count = 0;
  std::uint64_t ns = 0;
  std::vector<Name> names;  // the most frequent first
};

// What became of a GPU's records.
struct GpuHealth {
  std::string source;               // "CUPTI 130200"; "" where none were taken
  std::string timing;               // "both", "cupti" or "events"; "" where nothing was timed
  std::uint64_t cupti_version = 0;  // 0 without CUPTI
  std::uint64_t records = 0;        // delivered: activities, calls and the scopes of calls
  std::uint64_t dropped = 0;        // by the vendor's library, as it says
  std::uint64_t buffers_lost = 0;   // handed over without memory
  std::uint64_t no_buffer = 0;      // wanted when all were in use
  std::uint64_t unknown = 0;        // of a kind that is not known
  std::uint64_t untimed = 0;        // activities without a start or an end; left out
  std::uint64_t reversed = 0;       // activities that end before they begin; left out
  std::uint64_t early = 0;          // activities that begin before they were asked for; kept
  std::uint64_t outside_steps = 0;  // activities asked for while nothing was recorded; left out
  std::uint64_t event_pairs = 0;    // CUDA events around layers, as pairs
  std::uint64_t events_missed =
      0;  // pairs not made or not resolved: none was free, or CUDA refused
  std::uint64_t events_capturing = 0;  // pairs not made, since the stream was being captured
  std::uint64_t earlier_graphs = 0;    // activities of graphs captured while nothing was recorded

  friend bool operator==(const GpuHealth&, const GpuHealth&) = default;
};

// What a report must say of itself: how much it explains, what went missing, what recording cost.
struct Health {
  double attributed_share = 1;   // of activity time, in 0…1
  std::uint64_t activities = 0;  // in all recorded steps
  std::uint64_t activity_ns = 0;
  std::vector<Unattributed> unattributed;  // activities
  std::uint64_t inferred = 0;  // activities whose layer was inferred from what ran around them
  std::uint64_t inferred_ns = 0;
  std::uint64_t nodes = 0;  // autograd nodes that ran
  std::vector<Unattributed> unattributed_nodes;
  std::uint64_t emitted = 0;     // records that hooks tried to write
  std::uint64_t recorded = 0;    // records that were kept
  std::uint64_t dropped = 0;     // emitted − recorded, exactly
  std::uint64_t cut_scopes = 0;  // scopes closed by the end of the recording, not by their own exit
  std::uint64_t thrown_scopes = 0;  // scopes left by an exception
  bool cut = false;                 // the file ends without its closing record
  double scope_cost_ns = 0;         // one scope, entry and exit; measured at start on this machine
  double op_cost_ns = 0;            // one operator record, likewise
  std::uint64_t writer_cpu_ns = 0;  // processor time of the writer thread
  double tracing_share =
      0;  // estimated share of the steps' time that recording took on the user's threads
  GpuHealth gpu;
  std::vector<std::string> notes;  // anything else a reader must know, one sentence each
};

// Where and with what a run was made.
struct RunInfo {
  std::string layertrace_version;
  int format_version = 0;
  std::string torch_version;
  std::string host;
  std::string os;
  std::string cpu;
  std::uint64_t cpu_count = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t pid = 0;
  std::string program;
  std::string clock;      // "tsc" or "boottime"; "virtual" is a simulated GPU's
  std::string created;    // UTC, ISO 8601
  bool ops = true;        // operators were recorded
  std::string device;     // the GPU whose work was recorded; "" for none
  std::string simulated;  // the simulated GPU that it ran on; "" for none
};

struct Profile {
  std::vector<Layer>
      layers;  // parents before children; layers[0] is the root where a model was given
  std::vector<Step> steps;       // the recorded ones; of very many every second, every fourth…
  std::uint64_t step_count = 0;  // how many were recorded
  Stat step_ns;                  // the wall time of all of them
  bool steps_marked = true;      // false: step() was never called, the whole recording is one step
  std::array<PhaseStats, kPhaseCount> outside;  // what ran in no layer, by phase
  std::vector<Kernel> kernels;                  // of GPUs; those that took longest first
  std::vector<Idle> idle;                       // of GPUs; the longest first
  Health health;
  RunInfo run;

  // The layer with this path, or nullptr.
  LAYERTRACE_API const Layer* find(std::string_view path) const noexcept;
};

}  // namespace layertrace
