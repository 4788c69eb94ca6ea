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
#include <optional>
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

// What operators computed and moved, by the convention of docs/flops.md. Per step: of the steps in
// which operators were counted, and of those that were like them.
struct Amounts {
  double flops = 0;         // of contractions: two for each multiply-add
  double aux_flops = 0;     // all other arithmetic, never in the above
  double flops_causal = 0;  // the first, with only those products that a causal mask leaves
  double bytes = 0;         // of the tensors that operators read and wrote
  double activations = 0;   // elements that contractions put out
  // As fvcore counts, in its unit; and elements that the products which it sees put out.
  double fvcore_flops = 0;
  double fvcore_activations = 0;
  // The first, by the format of the factors: fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4, others.
  std::array<double, 9> flops_by_format{};

  double macs() const noexcept { return flops / 2; }
  bool empty() const noexcept {
    return flops == 0 && aux_flops == 0 && bytes == 0 && activations == 0 && fvcore_flops == 0;
  }
  LAYERTRACE_API Amounts& operator+=(const Amounts& other) noexcept;
  friend bool operator==(const Amounts&, const Amounts&) = default;
};
LAYERTRACE_API Amounts operator*(Amounts amounts, double factor) noexcept;

// Memory by the allocators' own reports, in bytes, per counted step: of the GPUs where the step
// took memory there, else of the host. What each figure is: docs/memory.md.
struct MemoryStats {
  double allocated = 0;
  double freed = 0;  // of these, given back in the same step, wherever that was
  double kept = 0;   // of these, given back by a backward: what was kept for it
  double peak = 0;   // most in use at once while it ran, above what was when the counting began

  bool empty() const noexcept { return allocated == 0 && peak == 0; }
  friend bool operator==(const MemoryStats&, const MemoryStats&) = default;
};

// How much was in use from a moment on, above what was when the step's counting began.
struct MemoryPoint {
  double ns = 0;  // since the step's start
  double bytes = 0;
  int layer = -1;  // who took or gave back: index into Profile::layers, −1 outside any
  Phase phase = Phase::kOther;

  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};

// What the allocator of one device told in the counted steps.
struct DeviceMemory {
  int device = -1;  // of CUDA; −1 is the host
  // Per counted step. Blocks from before the counting are among the freed where their size is told:
  // on GPUs.
  double allocated = 0;
  double freed = 0;
  // Most in use at once in any of these steps, above what was when its counting began; and where,
  // and how long after the step's start, it came to that.
  double peak = 0;
  int peak_layer = -1;  // index into Profile::layers, −1 outside any
  Phase peak_phase = Phase::kOther;
  double peak_ns = 0;
  // The step with that peak: each change, or of many the highest of several. At most 2,000.
  std::vector<MemoryPoint> timeline = {};

  friend bool operator==(const DeviceMemory&, const DeviceMemory&) = default;
};

// What limits a device's work: how fast it computes, or how fast its memory is.
enum class Roof : std::uint8_t {
  kNone,  // nothing to hold it against: no work was counted, no roof is known, or it took no time
  kCompute,
  kMemory,
};

// "none", "compute", "memory".
LAYERTRACE_API std::string_view roof_name(Roof roof) noexcept;

// What was achieved, and how far that is from what the device can do (docs/roofline.md). Over the
// time in which the device was busy; 0 for what is not known.
struct Rates {
  double flops_per_s = 0;
  double bytes_per_s = 0;
  double intensity = 0;  // FLOP per byte
  Roof roof = Roof::kNone;
  double roof_share = 0;      // above 1: a peak is wrong
  double unexplained_ns = 0;  // busy time that neither roof explains

  friend bool operator==(const Rates&, const Rates&) = default;
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
  Stat copies;    // those of the activities that are copies or sets
  Stat launches;  // calls on the host that asked for activities
  Stat event_ns;  // time on the stream by CUDA events; several streams' added up
  Stat idle_ns;   // while the host was inside, and the device had nothing to do
  // Where operators were counted.
  Amounts amounts;
  Amounts self_amounts;
  MemoryStats memory;
  Rates rates;

  bool empty() const noexcept {
    return calls.max == 0 && host_ns.max == 0 && activities.max == 0 && launches.max == 0 &&
           event_ns.max == 0 && idle_ns.max == 0 && amounts.empty();
  }
};

// A parameter or buffer of a module.
struct Parameter {
  std::string name;  // "weight"
  std::vector<std::int64_t> shape;
  std::string dtype;  // "float32"
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  bool trainable = false;
  bool buffer = false;
  std::string shared_with;  // the first path of the same tensor, where several modules have it
};

// What went into a layer's calls and came out: "float32[2, 64, 512]", several with commas between.
struct CallShapes {
  std::string input;
  std::string output;
  double calls = 0;  // per step
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
  // Of parameters: with children, a tensor that several have counted once; then its own.
  std::uint64_t params = 0;
  std::uint64_t params_trainable = 0;
  std::uint64_t param_bytes = 0;
  std::uint64_t buffer_bytes = 0;
  std::uint64_t self_params = 0;
  std::uint64_t self_params_trainable = 0;
  std::uint64_t self_param_bytes = 0;
  std::vector<Parameter> parameters;  // its own, buffers too
  std::string kernel_size;            // of a convolution or pooling: "3 × 3"
  std::vector<CallShapes> shapes;     // of the calls that were counted; the most frequent first

  const PhaseStats& phase(Phase p) const { return phases[static_cast<std::size_t>(p)]; }
};

// What one GPU did while a step lasted, whoever had asked for it.
struct DeviceStep {
  std::uint32_t device = 0;
  std::uint64_t busy_ns = 0;
  std::uint64_t idle_ns = 0;                   // the rest of the step
  std::uint64_t exposed_copy_ns = 0;           // copies and sets, while no kernel ran
  std::uint64_t exposed_communication_ns = 0;  // collectives' kernels, while no other ran

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
  // How it was launched.
  struct Launch {
    std::array<std::uint32_t, 3> grid{};
    std::array<std::uint32_t, 3> block{};
    std::uint32_t registers = 0;
    std::uint32_t shared_bytes = 0;
    double occupancy = 0;  // in 0…1, as far as registers, shared memory and the block's size allow

    auto operator<=>(const Launch&) const = default;
  };
  // Whom it serves.
  struct Use {
    int layer = -1;  // index into Profile::layers, −1 outside any
    Phase phase = Phase::kOther;
    std::uint64_t count = 0;
    std::uint64_t ns = 0;
    std::uint64_t min_ns = 0;
    std::uint64_t max_ns = 0;
    std::uint64_t bytes = 0;
    std::uint64_t outside_count = 0;  // as of the kernel
    std::uint64_t outside_ns = 0;
    Launch longest = {};
  };
  std::string name;        // demangled, whole
  std::string short_name;  // without namespaces and arguments
  std::string kind;        // "kernel", "copy", "set"
  std::uint64_t count = 0;
  std::uint64_t ns = 0;  // their times added up
  std::uint64_t min_ns = 0;
  std::uint64_t max_ns = 0;
  std::uint64_t bytes = 0;  // of copies and sets, added up
  // Of an imported trace: those of all these that no recorded step asked for.
  std::uint64_t outside_count = 0;
  std::uint64_t outside_ns = 0;
  // Of its longest launch.
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
  std::uint32_t registers = 0;
  std::uint32_t shared_bytes = 0;
  double occupancy = 0;   // as of a launch
  std::vector<Use> uses;  // the longest first
};

// An operator, with what its calls come to. Per step.
struct Operator {
  // Whose they are.
  struct Use {
    int layer = -1;  // index into Profile::layers, −1 outside any
    Phase phase = Phase::kOther;
    double calls = 0;
    Amounts amounts;
  };
  std::string name;  // "aten::addmm"
  double calls = 0;
  bool counted = true;   // false in a run that counted nothing: only its calls and times are known
  double uncounted = 0;  // of the calls, those without a formula
  Amounts amounts;
  // Its own time on the host, where operators are recorded: with that of operators that it called
  // and that are not in the list themselves.
  double host_ns = 0;
  std::vector<Use> uses;
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

// What became of the events of another profiler's trace. Those of `left_out` are added to `kept`
// and `merged`: all of them.
struct SourceEvents {
  std::uint64_t events = 0;            // of the file; 0 where the run was recorded by layertrace
  std::uint64_t kept = 0;              // each as a span, a launch or an activity of its own
  std::uint64_t merged = 0;            // parts of those: flows, names, the other half of a pair
  std::vector<Unattributed> left_out;  // by reason
};

// What became of a GPU's records.
struct GpuHealth {
  std::string source;               // "CUPTI 130200"; "" where none were taken
  std::string timing;               // "both", "cupti" or "events"; "" where nothing was timed
  std::uint64_t cupti_version = 0;  // 0 without CUPTI
  std::uint64_t records = 0;        // delivered: activities, calls and the scopes of calls
  std::uint64_t dropped = 0;        // by the vendor's library, as it says
  std::uint64_t buffers_lost = 0;   // without memory, not given back, or not readable to their end
  std::uint64_t no_buffer = 0;      // wanted when all were in use
  std::uint64_t unknown = 0;        // of a kind that is not known
  std::uint64_t untimed = 0;        // activities without a start or an end; left out
  std::uint64_t reversed = 0;       // activities that end before they begin; left out
  std::uint64_t clock_set = 0;      // how often the clock of its times was set while it was read
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
  std::uint64_t activities = 0;  // in all recorded steps; of an imported trace, all there are
  std::uint64_t activity_ns = 0;
  std::vector<Unattributed> unattributed;  // activities
  std::vector<Unattributed> rejected;      // activities of the source that could not be kept
  SourceEvents source;                     // of an imported trace
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
  std::string name;     // given by the user; "" for none
  std::string command;  // as a shell would take it; secrets read "***"
  std::string commit;   // of the repository that the program is run in or comes from; "" for none
  std::string python_version;  // "" for a program without
  std::string clock;           // "tsc" or "boottime"; "virtual" is a simulated GPU's
  std::string created;         // UTC, ISO 8601
  bool ops = true;             // operators were recorded
  std::string device;          // the GPU whose work was recorded; "" for none
  std::string simulated;       // the simulated GPU that it ran on; "" for none
  bool summary = false;        // of one call of a model, to see what that is
  std::string imported_from;   // "Kineto" or "Chrome JSON"; "" where layertrace recorded it
  // Of several processes that train together, where an imported trace tells: which it was (else
  // −1), and of how many (else 0).
  std::int64_t rank = -1;
  std::int64_t world_size = 0;
};

// What the device can do at most, which rates are held against, and who says so.
struct DeviceInfo {
  std::string name;
  std::string origin;  // "published", "given", "measured", "simulated"; "" where nothing is known
  // Of products of matrices, by format as in Amounts: fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4.
  // 0 for what is not known.
  std::array<double, 8> flops_per_s{};
  double bytes_per_s = 0;   // of its memory
  std::string source;       // the document, or how it was measured
  std::uint64_t count = 1;  // devices that were in use; the figures are of one

  friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

// "fp64", "fp32", … by the place in Amounts::flops_by_format; "other" for the last.
LAYERTRACE_API std::string_view format_name(std::size_t format) noexcept;

// How a metric of two models, or of two runs, is held against each other.
enum class MetricComparison : std::uint8_t {
  kNone,        // not at all
  kRatio,       // the second by the first: more is better
  kReciprocal,  // the first by the second: less is better
  kDifference,  // the second less the first: more is better
};

enum class Better : std::uint8_t { kAsCompared, kHigh, kLow };

// "none", "ratio", "reciprocal", "difference"; "", "high", "low".
LAYERTRACE_API std::string_view metric_comparison_name(MetricComparison comparison) noexcept;
LAYERTRACE_API std::string_view better_name(Better better) noexcept;

// What a value may be shown in, and how much of the value's own unit that is: {"GigaMACs", 1e9}.
struct MetricUnit {
  std::string name;
  double size = 1;

  friend bool operator==(const MetricUnit&, const MetricUnit&) = default;
};

// What a metric is: a figure of a model or of a run, of layertrace's or of the user's.
struct MetricInfo {
  std::string key;               // "accuracy"
  std::string name = {};         // "Accuracy"; the key unless given
  std::string description = {};  // a sentence
  std::string unit = {};         // of the value: "bytes", "s", "MACs", "%"; "" for a mere number
  // What people are shown it in: one of `scales`, or of those that are known of the unit
  // (docs/card.md). "" for the one in which it is short.
  std::string shown_in = {};
  std::vector<MetricUnit> scales = {};  // beside those that are known
  MetricComparison comparison = MetricComparison::kNone;
  Better better = Better::kAsCompared;  // where it is not as the comparison has it

  friend bool operator==(const MetricInfo&, const MetricInfo&) = default;
};

struct MetricValue {
  MetricInfo info;
  std::optional<double> value = {};  // in `info.unit`; nothing where it is not known

  friend bool operator==(const MetricValue&, const MetricValue&) = default;
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
  // That were counted, those with most FLOPs first; where none were, all by time.
  std::vector<Operator> operators;
  double counted_share = 0;  // of the recorded steps, those that were counted or like counted ones
  std::vector<DeviceMemory> device_memory;  // of the counted steps; the host first
  double gradient_bytes = 0;                // allocated by a backward, and there when it was over
  double optimizer_bytes = 0;  // allocated by optimizers, and there at the end of a step
  DeviceInfo device;
  double mfu = 0;  // of the device's peak, what the model's own FLOPs took of a step; 0: not known
  double hfu = 0;  // the same with what was computed again in the backward
  Health health;
  RunInfo run;
  // What the state of the optimizers that stepped takes, whenever it was made; where they told.
  std::optional<double> optimizer_state_bytes;
  std::vector<MetricValue> metrics;  // that the user gave to the run, each key once

  // The layer with this path, or nullptr.
  LAYERTRACE_API const Layer* find(std::string_view path) const noexcept;
};

// The memory that training takes, in bytes: what there is of each when a backward begins.
struct MemoryForecast {
  double parameters = 0;
  double gradients = 0;    // of the trainable parameters, as large as these
  double optimizer = 0;    // its state; 0 where that is not known
  double activations = 0;  // kept for the backward, as measured
  bool optimizer_known = true;

  double total() const noexcept { return parameters + gradients + optimizer + activations; }
  friend bool operator==(const MemoryForecast&, const MemoryForecast&) = default;
};
LAYERTRACE_API MemoryForecast forecast(const Profile& profile);

}  // namespace layertrace
