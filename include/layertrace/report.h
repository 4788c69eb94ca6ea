// Reports: a Profile as text, for people and for programs.
//
//   std::cout << layertrace::tree(profile);
//   std::cout << layertrace::tree(profile, {.depth = 2, .sort = layertrace::SortKey::kTotal});
//   std::cout << layertrace::tree(profile, {.view = layertrace::View::kCost, .type = "Conv*"});
//
// Every function here is pure: it reads its arguments, keeps nothing, and may be called from any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/result.h>

// Of the Arrow C data interface, whose header defines them.
struct ArrowArrayStream;
struct ArrowSchema;

namespace layertrace {

enum class Column : std::uint8_t {
  kType,
  kForward,   // forward host time per step, with its share of the step
  kBackward,  // backward host time, likewise
  kTotal,     // forward + backward + recompute
  kRecompute,
  kSelf,          // host time without children, all phases
  kActivityTime,  // activities' time, all phases
  kBusy,          // the union of the activities' intervals, all phases
  kCalls,
  kActivities,
  kGpuForward,   // how long the GPU was busy with the forward, per step, with its share of the step
  kGpuBackward,  // likewise with the backward
  kKernels,      // kernels, copies and sets of a GPU
  kCopies,       // those of them that are copies and sets
  kLaunches,     // calls that asked for them
  kGpuEventForward,   // GPU time by CUDA events
  kGpuEventBackward,  // likewise
  kIdle,              // how long the GPU had nothing to do while the host was inside
  kLaunchBound,       // the same in forward and backward, as a share of the host's time there
  // Of the parameters, and of a convolution or pooling.
  kParams,
  kParamsTrainable,
  kParamBytes,
  kKernelSize,
  // Where operators were counted.
  kInputShapes,  // of the most frequent call
  kOutputShapes,
  kForwardFlops,
  kBackwardFlops,
  kFlops,  // this and the next three: all phases
  kMacs,
  kAuxFlops,
  kBytes,
  kActivations,  // elements that contractions put out, forward
  kMemoryPeak,   // the most in use at once
  kMemoryKept,   // for the backward
  // In forward and backward, over the time in which the device was busy with them.
  kTflops,
  kGbs,
  kIntensity,    // FLOP per byte
  kRoof,         // what limits it: "compute" or "memory"
  kPeakShare,    // how near to that it ran
  kUnexplained,  // busy time that neither roof explains
  kName,         // the last component of the path; the root's class
  kPath,
  kShare,     // of the step, what `total` takes; where a GPU was recorded, what `gpu_total` does
  kGpuTotal,  // forward + backward + recompute
  kGpuEventTotal,  // likewise by CUDA events
  kComputeShare,   // FLOP/s of the device's peak for these formats, whatever the roof
};

enum class SortKey : std::uint8_t {
  kDefinition,
  kForward,
  kBackward,
  kTotal,
  kSelf,
  kCalls,
  kActivities,
  kName,
  kGpu,     // how long the GPU was busy with forward and backward
  kFlops,   // all phases, as the next
  kBytes,   // that operators moved
  kParams,  // with children
  kMemory,  // the peak
};

// Columns that belong together; those that were asked for by name come after them.
enum class View : std::uint8_t {
  kTime,      // of the host and of the GPU
  kCost,      // shapes, parameters, FLOPs
  kMemory,    // of parameters and activations
  kRoofline,  // what was achieved, and how far that is from what the device can do
  kAll,       // every column that has anything to say
};

enum class TreeStyle : std::uint8_t {
  kColumns,   // aligned, with a heading
  kBrackets,  // ├── encoder [Parameters=4727872, MACs=75645952]
};

struct TreeOptions {
  int depth = -1;          // levels below the start node; −1 for all
  std::string start = {};  // path of the start node; "" for the whole model
  SortKey sort = SortKey::kDefinition;
  bool fold =
      true;  // numbered siblings of one shape become "12 × Block", with the sums of their figures
  // Empty: type, forward, backward, calls, activities; recompute where there is any. Where a GPU
  // was recorded: its forward and backward, too, and kernels in place of activities. Where
  // operators were counted: FLOPs of forward and backward, and the rate they were done at.
  std::vector<Column> columns = {};
  int width = 0;  // columns of the terminal; 0 for as wide as it takes
  bool color = false;
  bool ascii = false;
  TreeStyle style = TreeStyle::kColumns;
  std::optional<View> view = {};
  // Filters. Shown are the layers that pass all of them, and those that hold these.
  std::string match = {};  // of the path: "blocks.*.attn"; `*` for any characters, `?` for one
  std::string type = {};   // likewise of the class: "Linear,Conv*"
  double min_share = 0;    // of the step, in 0…1, as the column `share` has it
  bool trainable = false;  // with trainable parameters, in it or below
};

// Names as on the command line: "forward", "activity_time"… An unknown name is an error that lists
// those that exist.
LAYERTRACE_API Result<Column> parse_column(std::string_view name);
LAYERTRACE_API Result<SortKey> parse_sort_key(std::string_view name);
LAYERTRACE_API Result<View> parse_view(std::string_view name);
LAYERTRACE_API Result<TreeStyle> parse_tree_style(std::string_view name);

// Fills in `width`, `color` and `ascii` as suits the given stream (1 or 2): a terminal's width and
// colours there, plain text in pipes, box-drawing only where the locale is UTF-8. NO_COLOR and
// TERM=dumb are honoured. What is already set stays: a `width`, `color` or `ascii` asked for on a
// command line comes first.
LAYERTRACE_API TreeOptions for_terminal(int file_descriptor, TreeOptions options = {});

// The layer tree, with the coverage ledger as its last lines. An unknown start node gives a
// one-line tree that says so; check with Profile::find() first where that matters.
LAYERTRACE_API std::string tree(const Profile& profile, const TreeOptions& options = {});

// The same as a piece of HTML without scripts or style sheets, as notebooks show it.
LAYERTRACE_API std::string tree_html(const Profile& profile, const TreeOptions& options = {});

// What modules say of themselves, by path: "in_features=10, out_features=11, bias=True".
using ExtraReprs = std::map<std::string, std::string, std::less<>>;

// The model as PyTorch prints it, with times: "(fc): Linear(Forward Time: 1.234ms|Backward Time:
// …)". Modules that were not called have none. Before it a line where a GPU was simulated. Of the
// options it takes depth, start, sort, ascii and the filters.
LAYERTRACE_API std::string repr_tree(const Profile& profile, const TreeOptions& options = {},
                                     const ExtraReprs& extra = {});

// The same for programs: {"name": …, "type": …, "container": …, "depth": …, "forward_ns": …,
// "children": {"fc": {…}}}; docs/json.md describes the keys. Of several models, only "children";
// of an unknown start node {"error": …}.
LAYERTRACE_API std::string nested_json(const Profile& profile, const TreeOptions& options = {});

// {"layers": […], "steps": […], "health": {…}, …}; the keys are described in docs/json.md and only
// ever added to.
LAYERTRACE_API std::string layers_json(const Profile& profile);

// ---- Pictures ----

struct GraphOptions {
  int depth = -1;  // as in TreeOptions, and the next two
  std::string start = {};
  bool fold = true;
  // What the boxes tell, as brackets of a tree do: "Parameters=4727872". Empty: type, share of the
  // step, forward and backward time.
  std::vector<Column> columns = {};
  bool trainable = false;  // only layers with trainable parameters, in them or below
};

// The layers as a graph in Graphviz' language (`dot -Tsvg`): a box for each with its name and what
// the options ask for, coloured by its share of the step. On a GPU's time where one was recorded.
// An unknown start node gives a graph of one box that says so.
LAYERTRACE_API std::string graph_dot(const Profile& profile, const GraphOptions& options = {});

struct ReportOptions {
  std::string title = {};       // "" for the model's name
  std::string trace_file = {};  // the file that the run was saved to, which the page tells of
  std::string trace = {};       // what is in it, to be kept in the page; "" to leave it out
};
// A page with a larger trace in it takes browsers seconds to open.
inline constexpr std::size_t kLargestEmbeddedTrace = std::size_t{32} << 20;

// One page of HTML with all that there is to see (docs/report.md): it needs no other file, no
// server and no network. An error where the trace is too large to be kept in it.
LAYERTRACE_API Result<std::string> report_html(const Profile& profile,
                                               const ReportOptions& options = {});

// ---- Tables ----

enum class KernelSort : std::uint8_t { kTime, kCount, kName };

struct KernelOptions {
  std::string module = {};  // path: only what serves this layer and those below it; "" for all
  KernelSort sort = KernelSort::kTime;
  int limit = 0;  // so many at most; 0 for all
  int width = 0;  // as in TreeOptions
  bool color = false;
  bool ascii = false;
};

// "time", "count" or "name".
LAYERTRACE_API Result<KernelSort> parse_kernel_sort(std::string_view name);

// What ran on a GPU in all recorded steps: a row for each kernel and kind of copy, with counts and
// times, how it was launched, and whom it serves. An unknown module gives one line that says so.
LAYERTRACE_API std::string kernels_table(const Profile& profile, const KernelOptions& options = {});

// {"kernels": […]}, as in layers_json().
LAYERTRACE_API std::string kernels_json(const Profile& profile, const KernelOptions& options = {});

// Whose way of counting: ours, or that of another tool (docs/flops.md describes each).
enum class Convention : std::uint8_t {
  kLayertrace,
  kFvcore,
  kTorchinfo,
  kModuleprofiler,
  kDeeplite
};

// "layertrace", "fvcore", "torchinfo", "moduleprofiler" or "deeplite".
LAYERTRACE_API Result<Convention> parse_convention(std::string_view name);

// What a tool would say of the forward, rebuilt from what was recorded. Per step.
struct ConventionCounts {
  using Counts = std::vector<std::pair<std::string, double>>;
  std::string unit;  // "FLOPs", "MACs", "mult-adds" or "operations"
  // By path, as the layers are ordered, with children; the whole under "".
  Counts by_module;
  // Of the whole, the largest first. A tool that looks at modules only: by their class.
  Counts by_operator;
  // Elements that contractions put out; of layertrace and fvcore.
  Counts activations_by_module;
  Counts activations_by_operator;
  // Parameters, a tensor that several modules have counted once; deeplite's own are of
  // convolutions, batch norms and linear layers that were called, at 4 bytes each.
  double parameters = 0;
  double parameter_bytes = 0;
  // deeplite's alone, in units of 2^20 bytes: parameters; with the input and what modules put out.
  std::optional<double> model_size_mb;
  std::optional<double> footprint_mb;
  std::vector<std::string> notes;  // where and why it is not what is computed; a sentence each
};
LAYERTRACE_API ConventionCounts counts_by(const Profile& profile, Convention convention);

// {"convention": …, "unit": …, "by_module": {…}, "by_operator": {…}, …, "notes": […]}. What a
// convention does not have has no key.
LAYERTRACE_API std::string counts_json(const Profile& profile, Convention convention);

// ---- Tables: rows for programs and for papers ----
//
//   auto layers = layertrace::table(profile, layertrace::TableKind::kLayers);
//   if (layers) std::cout << layertrace::to_csv(*layers);

enum class ColumnKind : std::uint8_t { kText, kInteger, kReal, kBoolean };

// "text", "integer", "real", "boolean".
LAYERTRACE_API std::string_view column_kind_name(ColumnKind kind) noexcept;

// One cell; std::monostate where nothing is known. A value that is not of its column's kind counts
// as nothing.
using TableValue = std::variant<std::monostate, std::string, std::int64_t, double, bool>;

struct TableColumn {
  std::string name;  // with its unit: "forward_host_ns"
  std::string unit;  // "ns", "bytes", "FLOP", "share"…; "" where there is none (docs/tables.md)
  ColumnKind kind = ColumnKind::kText;
  bool detail = false;  // forms for people leave it out
  std::vector<TableValue> values = {};
};

struct Table {
  std::string name;
  std::vector<TableColumn> columns = {};  // as many values in each
  // What a reader of its figures must know: that a GPU was simulated, what was left out. A line for
  // each.
  std::string note = {};

  std::size_t rows() const noexcept { return columns.empty() ? 0 : columns.front().values.size(); }
  // The column with this name, or nullptr.
  LAYERTRACE_API const TableColumn* find(std::string_view column) const noexcept;
};

// What of a run: docs/tables.md has the columns of each.
enum class TableKind : std::uint8_t {
  kLayers,
  kKernels,
  kOperators,
  kCalls,  // not in a Profile: calls() of trace.h reads them from a file
  kSteps,
  kParameters,
  kSizes,
  kLedger,
  kMetrics,
};

struct TableOptions {
  std::string module = {};   // path: only this layer and those below it; "" for all
  int depth = -1;            // levels below that; −1 for all
  std::string root = {};     // what the root's path reads: "__root__", say
  bool leading_dot = false;  // paths below the root as ".encoder.0"
  // Of kernels and operators a row for each layer and phase that they serve; of parameters a row
  // for each module.
  bool by_layer = false;
  std::vector<std::string> columns = {};  // these, in this order; empty for all
  std::size_t limit = 0;                  // so many rows at most; 0 for all
  // Only layers with trainable parameters, in them or below; of a Profile's tables.
  bool trainable = false;
};

// "layers", "kernels", "operators", "calls", "steps", "parameters", "sizes", "ledger" or "metrics".
LAYERTRACE_API Result<TableKind> parse_table_kind(std::string_view name);

// What counts_by() has by module: "module", "type", "ops", and "activations" where the convention
// has these.
LAYERTRACE_API Result<Table> counts_table(const Profile& profile, Convention convention,
                                          const TableOptions& options = {});

// Fails where the options name a layer or a column that is not there, and lists what is.
LAYERTRACE_API Result<Table> table(const Profile& profile, TableKind kind,
                                   const TableOptions& options = {});

// For programs: every column, values in full, units in the metadata of JSON and Parquet.
LAYERTRACE_API std::string to_json(const Table& table);     // {"table", "columns", "rows"}
LAYERTRACE_API std::string to_csv(const Table& table);      // as RFC 4180 has it
LAYERTRACE_API std::string to_parquet(const Table& table);  // the bytes of a file
// For people: three significant digits, the unit in the heading, without columns that are details
// or empty.
LAYERTRACE_API std::string to_markdown(const Table& table);
LAYERTRACE_API std::string to_html(const Table& table);   // a <table>, without scripts or styles
LAYERTRACE_API std::string to_latex(const Table& table);  // a tabular that needs no package

enum class TableFormat : std::uint8_t { kJson, kCsv, kMarkdown, kHtml, kLatex, kParquet };

// "json", "csv", "md", "html", "latex" or "parquet"; also "markdown" and "tex".
LAYERTRACE_API Result<TableFormat> parse_table_format(std::string_view name);

// By the function of that format.
LAYERTRACE_API std::string write(const Table& table, TableFormat format);

// Ends what the Arrow C interface hands over, where nobody has taken it.
struct ReleaseArrow {
  LAYERTRACE_API void operator()(ArrowArrayStream* stream) const noexcept;
  LAYERTRACE_API void operator()(ArrowSchema* schema) const noexcept;
};

// The table for any Arrow library: arrow::ImportRecordBatchReader(stream.get()). Units are in the
// fields' metadata. Holds a copy of the table's values.
LAYERTRACE_API std::unique_ptr<ArrowArrayStream, ReleaseArrow> arrow_stream(const Table& table);
LAYERTRACE_API std::unique_ptr<ArrowSchema, ReleaseArrow> arrow_schema(const Table& table);

// ---- Comparison: what changed from one run to others ----
//
//   auto comparison = layertrace::compare({*before, *after});
//   std::cout << layertrace::comparison_text(comparison);

// Of a run's figure against the first run's.
enum class Verdict : std::uint8_t {
  kUnknown,  // nothing to judge by: one of the two has no such figure, or a single step
  kSame,
  kWithinNoise,
  kFaster,  // this and the next: of times
  kSlower,
  kLess,  // this and the next: of what is counted
  kMore,
  kBetter,  // this and the next: of metrics, as they are compared
  kWorse,
};

// "unknown", "same", "within noise", "faster", "slower", "less", "more", "better", "worse".
LAYERTRACE_API std::string_view verdict_name(Verdict verdict) noexcept;

struct ComparedFigure {
  bool known = false;
  double value = 0;  // per step; of times the median
  double low = 0;    // of times: the fastest step, and as far above the median
  double high = 0;
  double change = 0;  // against the first run's: 0.05 is 5 % more
  // Of times: how likely equal runs would differ by as much, as their other layers do; 1 where one
  // run's usual time reaches what the other takes undisturbed (docs/compare.md).
  double chance = 1;
  Verdict verdict = Verdict::kUnknown;
};

struct ComparedRow {
  std::string kind;    // "total", "metric", "layer", "kernel"
  std::string name;    // a layer's path, a kernel's or a metric's name; "" of the total
  std::string type;    // a layer's class
  std::string metric;  // "forward_ms"; of a metric its key
  std::string unit;    // "ms", "FLOP", "bytes", "elements", "per step"; of a metric its own
  std::vector<ComparedFigure> runs;
  MetricInfo info = {};  // of a metric
};

// A layer or kernel that not all runs have.
struct NotInAll {
  std::string kind;
  std::string name;
  std::vector<std::size_t> runs;  // which have it
};

struct Comparison {
  std::vector<std::string> names;  // of the runs
  // Of the total; of the runs' metrics; of layers, those that changed first, by how much time of
  // their own that is; then of kernels, likewise.
  std::vector<ComparedRow> rows;
  std::vector<NotInAll> not_in_all;
  std::vector<std::string> notes;           // what cannot be compared, and what to bear in mind
  std::vector<std::string> simulated = {};  // of each run: the simulated GPU; "" for none
};

struct CompareOptions {
  std::vector<std::string> names = {};  // of the runs; where empty, what the runs say themselves
  // That they were read from, "" for none: they name runs that do not say a name, or say the same.
  std::vector<std::string> files = {};
  double min_change = 0.05;  // of times: what is less is within noise
  double error_rate = 0.05;  // how often equal runs may show any time as changed, by their noise
};

// Runs are matched by module path and by kernel. Times are not compared between a host and a GPU,
// nor between a GPU and a simulated one.
LAYERTRACE_API Comparison compare(const std::vector<Profile>& runs,
                                  const CompareOptions& options = {});

struct ComparisonTextOptions {
  bool all = false;  // also what did not change
  int width = 0;     // as in TreeOptions
  bool color = false;
  bool ascii = false;
};
LAYERTRACE_API std::string comparison_text(const Comparison& comparison,
                                           const ComparisonTextOptions& options = {});

// A row for each figure of each run after the first; then one for what it or the first alone has,
// with the verdict "only after" or "only before".
LAYERTRACE_API Table comparison_table(const Comparison& comparison);

// A condition on the last run, for CI: "forward_ms > +5%", "total_ms@encoder > 2.5",
// "memory_bytes > 2e9", "metrics.accuracy < -0.5%". With a sign or in per cent it is the change
// against the first run, and one within noise is none.
struct Condition {
  std::string text;
  std::string metric;
  std::string layer;  // path; "" for the total
  bool is_greater = true;
  bool is_change = false;
  bool is_share = false;  // of a change: in per cent
  double limit = 0;
};
LAYERTRACE_API Result<Condition> parse_condition(std::string_view text);

// Why the condition holds, in one line; "" where it does not. An unknown metric or layer is an
// error that lists what there is.
LAYERTRACE_API Result<std::string> check_condition(const Comparison& comparison,
                                                   const Condition& condition);

// ---- Metrics: a registry of what model cards tell ----
//
//   layertrace::add_metric({.key = "sparsity", .unit = "%"},
//                          [](const layertrace::MetricInput& input) { return zeros_of(input); });
//
// Unlike the rest of this header, the registry is the process's. It may be used from any thread.

// What metrics are computed from.
struct MetricInput {
  const Profile* summary = nullptr;  // of one call, as summary() gives it
  Convention convention = Convention::kLayertrace;
  std::uint64_t batch_size = 0;       // 0: not known
  std::optional<double> input_bytes;  // of the tensors that go in
  std::vector<double> call_s = {};    // how long each timed call took
  std::function<double()> evaluate;   // the user's
  void* model = nullptr;              // module_of() of layertrace.h gives it; of a binding, nothing
  void* context = nullptr;            // of a binding: what its own metrics need
};

// What the metric comes to, in its unit; nothing where that is not known. What it throws is told in
// the card.
using MetricFunction = std::function<std::optional<double>(const MetricInput&)>;
// The same for several, in their order.
using MetricsFunction = std::function<std::vector<std::optional<double>>(const MetricInput&)>;

struct MetricOptions {
  bool override = false;  // take the place of one with the same key
};

// An error where the key is another's already and is not to be overridden, or names no unit that is
// known.
LAYERTRACE_API Result<void> add_metric(MetricInfo info, MetricFunction function,
                                       const MetricOptions& options = {});
LAYERTRACE_API Result<void> add_metric(std::vector<MetricInfo> infos, MetricsFunction function,
                                       const MetricOptions& options = {});
// False where none was added with this key. A built-in one that it had taken the place of is back.
LAYERTRACE_API bool remove_metric(std::string_view key);
// In the order in which cards have them: the built-in ones first.
LAYERTRACE_API std::vector<MetricInfo> metrics();

// Names as they are given back by their functions of profile.h.
LAYERTRACE_API Result<MetricComparison> parse_metric_comparison(std::string_view name);
LAYERTRACE_API Result<Better> parse_better(std::string_view name);

// What people are shown a metric of this size in.
LAYERTRACE_API MetricUnit shown_unit(const MetricInfo& info, double value);

// ---- Model cards: a model in a few figures, and models side by side ----
//
//   auto card = layertrace::card(model, {.name = "small"}, inputs);  // of layertrace.h
//   if (card) std::cout << layertrace::card_text(*card);

struct CardOptions {
  std::string name = {};                            // of the model; its class unless given
  std::vector<std::string> metrics = {};            // these, by key, in this order; empty for all
  Convention convention = Convention::kLayertrace;  // whose way of counting
  std::function<double()> evaluate = {};            // gives the metric `evaluation`
  int iterations = 30;                              // calls that are timed
  int warmup = 5;                                   // calls before them
  std::uint64_t batch_size = 0;  // the first dimension of the first tensor unless given
};

struct ModelCard {
  std::string name;
  std::string device;            // "cpu", "cuda:0"
  std::uint64_t batch_size = 0;  // 0: not known
  std::string convention;
  std::string simulated;             // the simulated GPU that it ran on; "" for none
  std::vector<MetricValue> metrics;  // those that are known, or were asked for
  std::vector<Error> failures;       // of metrics that could not be computed
  std::vector<std::string> notes;
  std::shared_ptr<const Profile> summary;  // by layer
};

// An error where one of these is no metric's key; it lists those that are.
LAYERTRACE_API Result<void> check_metrics(const std::vector<std::string>& keys);

// Computes what the registry has. An error where a metric is asked for that there is not; one that
// fails is among the card's failures, and the others are there.
LAYERTRACE_API Result<ModelCard> make_card(const MetricInput& input, const std::string& device,
                                           const CardOptions& options);

// Models side by side, each held against the first.
struct ComparedMetric {
  struct Side {
    std::optional<double> value;
    std::optional<double> score;  // as the metric's comparison has it
    Verdict verdict = Verdict::kUnknown;
  };
  MetricInfo info;
  std::vector<Side> models;
};
struct CardComparison {
  std::vector<ModelCard> cards;
  std::vector<ComparedMetric> rows;
  std::vector<std::string> notes;
};
LAYERTRACE_API CardComparison compare_cards(std::vector<ModelCard> cards);

struct CardTextOptions {
  bool color = false;
  bool ascii = false;
};
LAYERTRACE_API std::string card_text(const ModelCard& card, const CardTextOptions& options = {});
LAYERTRACE_API std::string card_text(const CardComparison& comparison,
                                     const CardTextOptions& options = {});
LAYERTRACE_API Table card_table(const ModelCard& card);
LAYERTRACE_API Table card_table(const CardComparison& comparison);
LAYERTRACE_API std::string card_json(const ModelCard& card);
LAYERTRACE_API std::string card_json(const CardComparison& comparison);

}  // namespace layertrace
