// Times for a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/timing.h>

#include "report/numbers.h"
#include "report/table.h"
#include "report/text.h"
#include "report/timing/columns.h"

namespace layertrace {
namespace timing {
namespace {

using report::clean;
using report::Tone;

class Writer {
 public:
  explicit Writer(const TimingTextOptions& options)
      : options_(options), glyphs_(report::glyphs_for(options.ascii)) {}

  void head(const std::string& model, std::uint64_t iterations, std::uint64_t drop_first,
            const TimingEnvironment& environment) {
    if (const std::string note = simulation_note(environment); !note.empty()) sentence(note);
    std::vector<std::string> parts = {model};
    parts.push_back(fmt::format(
        "{} of {} calls, without the first {}", report::format_count(iterations - drop_first),
        report::format_count(iterations), report::format_count(drop_first)));
    if (!environment.gpu.empty()) parts.push_back(environment.gpu);
    if (!environment.cpu.empty()) parts.push_back(environment.cpu);
    const std::uint64_t threads = environment.intra_op_threads;
    if (threads > 0) parts.push_back(fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"));
    if (!environment.torch_version.empty()) parts.push_back("torch " + environment.torch_version);
    std::string line;
    for (const std::string& part : parts)
      line += (line.empty() ? "" : fmt::format(" {} ", glyphs_.dot)) + part;
    sentence(line);
    out_ += '\n';
  }

  void column(const std::string& title, bool left, int importance) {
    table_.columns.push_back({title, left, importance});
  }
  void stats_columns() {
    for (const auto& [title, figure, importance] : kFigures) column(title, false, importance);
  }

  void row(const std::string& name, std::vector<report::Cell> cells, Tone tone = Tone::kPlain) {
    report::TableRow row;
    row.name = {clean(name, options_.ascii), tone};
    row.cells = std::move(cells);
    table_.rows.push_back(std::move(row));
  }

  void add(std::vector<report::Cell>& cells, const TimeStats& stats) const {
    for (const auto& [title, figure, importance] : kFigures)
      cells.push_back({stats.count > 0 ? time(stats.*figure) : std::string(glyphs_.dash)});
  }

  void table(const char* name) {
    report::TableRow heading;
    heading.name = {name, Tone::kDim};
    for (const auto& column : table_.columns) heading.cells.push_back({column.title, Tone::kDim});
    table_.rows.insert(table_.rows.begin(), std::move(heading));
    out_ += report::render(table_, width(), options_.color, glyphs_.ellipsis);
    out_ += '\n';
  }

  void sentence(const std::string& text) {
    for (const std::string& line : report::wrap_words(clean(text, options_.ascii), width()))
      out_ += line + '\n';
  }

  std::string time(double ms) const { return report::format_time(ms * timing::kNsPerMs, glyphs_); }
  const report::Glyphs& glyphs() const { return glyphs_; }
  std::string take() { return std::move(out_); }

 private:
  struct Figure {
    const char* title;
    double TimeStats::*figure;
    int importance;
  };
  static constexpr Figure kFigures[] = {
      // NOLINT(*-avoid-c-arrays)
      {"mean", &TimeStats::mean_ms, 9}, {"std", &TimeStats::stdev_ms, 6},
      {"min", &TimeStats::min_ms, 5},   {"median", &TimeStats::median_ms, 8},
      {"p95", &TimeStats::p95_ms, 4},   {"p99", &TimeStats::p99_ms, 7},
      {"max", &TimeStats::max_ms, 3},
  };

  std::size_t width() const { return static_cast<std::size_t>(std::max(0, options_.width)); }

  const TimingTextOptions& options_;
  const report::Glyphs& glyphs_;
  report::Table table_;
  std::string out_;
};

void add_modules(Writer& writer, const Benchmark& benchmark, const TimingTextOptions& options,
                 bool has_gpu) {
  const TimedModule* root = benchmark.modules.empty() ? nullptr : &benchmark.modules.front();
  const double whole = root != nullptr && root->path.empty() ? time_stats(root->ns).mean_ms : 0;
  for (const TimedModule& module : benchmark.modules) {
    if (options.depth >= 0 && module.depth > options.depth) continue;
    const TimeStats stats = time_stats(module.ns);
    const bool has_share = whole > 0 && stats.count > 0 && module.is_gpu == root->is_gpu;
    std::vector<report::Cell> cells = {{clean(module.type, options.ascii)},
                                       {report::format_count(module.calls)}};
    if (has_gpu) cells.push_back({module.is_gpu ? "GPU" : "host"});
    writer.add(cells, stats);
    cells.push_back({has_share ? report::format_share(stats.mean_ms / whole)
                               : std::string(writer.glyphs().dash)});
    const std::string root_name = options.root.empty() ? benchmark.model : options.root;
    writer.row(module.path.empty() ? root_name : module.path, std::move(cells));
  }
}

// What differs less than single calls do may be the machine's doing, not the scopes'.
std::string comparison(const Benchmark& benchmark, const Writer& writer) {
  const auto overhead = scope_overhead(benchmark);
  if (!overhead) return "";
  const TimeStats without = time_stats(benchmark.total_ns);
  const TimeStats with = time_stats(benchmark.scoped_ns);
  const bool is_within = with.p25_ms <= without.p75_ms && without.p25_ms <= with.p75_ms;
  return fmt::format(
      "With scopes in it the model takes {} (median), without any {}: {} {}{}. Figures of modules "
      "are with scopes, from a pass of their own.",
      writer.time(with.median_ms), writer.time(without.median_ms),
      report::format_share(std::abs(*overhead)), *overhead < 0 ? "less" : "more",
      is_within ? ", which is within the spread of single calls" : "");
}

}  // namespace
}  // namespace timing

std::vector<std::string> recording_notes(const Profile& profile, bool uses_gpu) {
  std::vector<std::string> notes;
  if (uses_gpu && profile.run.device.empty()) {
    notes.emplace_back(
        "What the GPU did for each module could not be recorded: modules' times are the host's, "
        "which hands work over and does not wait for it. `layertrace doctor` tells why.");
  }
  const Health& health = profile.health;
  if (health.dropped > 0) {
    notes.push_back(fmt::format(
        "{} of {} records of the pass with scopes were dropped: some modules' times lack a part.",
        report::format_count(health.dropped), report::format_count(health.emitted)));
  }
  if (health.gpu.events_missed > 0) {
    notes.push_back(
        fmt::format("{} pairs of CUDA events are missing: some modules' times lack a "
                    "part.",
                    report::format_count(health.gpu.events_missed)));
  }
  return notes;
}

std::string benchmark_text(const Benchmark& benchmark, const TimingTextOptions& options) {
  timing::Writer writer(options);
  const bool has_gpu = std::ranges::any_of(benchmark.modules, &TimedModule::is_gpu);
  writer.head(benchmark.model, benchmark.iterations, benchmark.drop_first, benchmark.environment);
  writer.column("type", true, 2);
  writer.column("calls", false, 1);
  if (has_gpu) writer.column("clock", true, 2);
  writer.stats_columns();
  writer.column("share", false, 7);
  if (!benchmark.total_ns.empty()) {
    std::vector<report::Cell> cells = {{report::clean(benchmark.model, options.ascii)}, {"1"}};
    if (has_gpu) cells.push_back({"host"});
    writer.add(cells, time_stats(benchmark.total_ns));
    cells.push_back({""});
    writer.row("total, without scopes", std::move(cells), report::Tone::kBold);
  }
  timing::add_modules(writer, benchmark, options, has_gpu);
  writer.table("module");
  if (const std::string text = timing::comparison(benchmark, writer); !text.empty())
    writer.sentence(text);
  for (const std::string& note : benchmark.notes) writer.sentence(note);
  return writer.take();
}

std::string throughput_text(const Throughput& throughput, const TimingTextOptions& options) {
  timing::Writer writer(options);
  writer.head(throughput.model, throughput.iterations, throughput.drop_first,
              throughput.environment);
  writer.stats_columns();
  writer.column("per sample", false, 9);
  writer.column("samples/s", false, 9);
  for (const BatchTimes& batch : throughput.batches) {
    const TimeStats stats = time_stats(batch.ns);
    const auto size = static_cast<double>(batch.batch_size);
    std::vector<report::Cell> cells;
    writer.add(cells, stats);
    const bool is_known = stats.mean_ms > 0 && size > 0;
    const std::string dash(writer.glyphs().dash);
    constexpr double kMsPerS = 1e3;
    cells.push_back({is_known ? writer.time(stats.mean_ms / size) : dash});
    cells.push_back({is_known ? report::format_si(size * kMsPerS / stats.mean_ms) : dash});
    writer.row(std::to_string(batch.batch_size), std::move(cells));
  }
  writer.table("batch size");
  if (throughput.out_of_memory_at > 0) {
    writer.sentence(
        fmt::format("Memory does not suffice for batches of {}: larger ones were not tried.",
                    report::format_count(throughput.out_of_memory_at)));
  }
  return writer.take();
}

}  // namespace layertrace
