// Times as tables: of modules, and of batches of several sizes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/timing.h>

#include "report/tables/makers.h"
#include "report/text.h"
#include "report/timing/columns.h"

namespace layertrace {
namespace timing {
namespace {

// What is timed: the model without scopes, or a module.
struct Timed {
  std::string path;
  std::string type;
  bool has_scopes = false;
  bool is_gpu = false;
  double calls = 1;
  const std::vector<std::uint64_t>* iterations = nullptr;  // nullptr: all that were kept
  const std::vector<std::uint64_t>* ns = nullptr;
  TimeStats stats = {};
};

struct TimedCall {
  const Timed* of = nullptr;
  std::uint64_t iteration = 0;
  std::uint64_t ns = 0;
};

bool is_within(const std::string& path, const std::string& module) {
  return module.empty() || path == module || path.starts_with(module + ".");
}

int depth_of(const std::string& path) {
  return path.empty() ? 0 : static_cast<int>(std::ranges::count(path, '.')) + 1;
}

bool is_asked_for(const TimedModule& module, const TableOptions& options) {
  return is_within(module.path, options.module) &&
         (options.depth < 0 || module.depth - depth_of(options.module) <= options.depth);
}

std::vector<Timed> rows_of(const Benchmark& benchmark, TimedRows rows,
                           const TableOptions& options) {
  std::vector<Timed> found;
  const bool has_total = !benchmark.total_ns.empty() && options.module.empty();
  if (rows != TimedRows::kModules && has_total)
    found.push_back({.path = "", .type = benchmark.model, .ns = &benchmark.total_ns});
  if (rows == TimedRows::kTotal) return found;
  for (const TimedModule& module : benchmark.modules) {
    if (!is_asked_for(module, options)) continue;
    found.push_back({module.path, module.type, true, module.is_gpu, module.calls,
                     &module.iterations, &module.ns});
  }
  return found;
}

// Of the root's time by the same clock.
TableValue share_of_root(const Timed& row, const Benchmark& benchmark, double root_ms) {
  if (!row.has_scopes || root_ms <= 0 || row.stats.count == 0) return {};
  if (benchmark.modules.front().is_gpu != row.is_gpu) return {};
  return row.stats.mean_ms / root_ms;
}

template <typename Row, typename Of>
void add_names(tables::Sheet<Row>& sheet, const TableOptions& options, const Of& of) {
  sheet.text("module", [&](const Row& row) { return tables::shown_path(of(row).path, options); })
      .text("type", [&](const Row& row) { return of(row).type; })
      .boolean("scopes", [&](const Row& row) { return of(row).has_scopes; })
      .text("clock", [&](const Row& row) { return of(row).is_gpu ? "gpu" : "host"; });
}

Table aggregated(const Benchmark& benchmark, std::vector<Timed> rows, const TableOptions& options) {
  for (Timed& row : rows) row.stats = time_stats(*row.ns);
  const bool has_root = !benchmark.modules.empty() && benchmark.modules.front().path.empty();
  const double root_ms = has_root ? time_stats(benchmark.modules.front().ns).mean_ms : 0;
  tables::Sheet<Timed> sheet("benchmark", std::move(rows));
  add_names(sheet, options, std::identity());
  sheet.real("calls", "per iteration", [](const Timed& row) { return row.calls; });
  add_stats(sheet, [](const Timed& row) -> const TimeStats& { return row.stats; });
  sheet.real("share", "share",
             [&](const Timed& row) { return share_of_root(row, benchmark, root_ms); });
  add_environment(sheet, benchmark.environment);
  return sheet.take();
}

Table single(const Benchmark& benchmark, const std::vector<Timed>& rows,
             const TableOptions& options) {
  std::vector<TimedCall> calls;
  for (const Timed& row : rows) {
    for (std::size_t i = 0; i < row.ns->size(); ++i) {
      const std::uint64_t iteration =
          row.iterations != nullptr ? (*row.iterations)[i] : benchmark.drop_first + i;
      calls.push_back({&row, iteration, (*row.ns)[i]});
    }
  }
  tables::Sheet<TimedCall> sheet("benchmark", std::move(calls));
  add_names(sheet, options, [](const TimedCall& call) -> const Timed& { return *call.of; });
  sheet.integer("iteration", "", [](const TimedCall& call) { return call.iteration; })
      .real("time_ms", "ms",
            [](const TimedCall& call) { return static_cast<double>(call.ns) / kNsPerMs; });
  add_environment(sheet, benchmark.environment);
  return sheet.take();
}

// A size with what its times come to.
struct Size {
  std::uint64_t batch_size = 0;
  TimeStats stats = {};
};

}  // namespace
}  // namespace timing

Result<TimedRows> parse_timed_rows(std::string_view name) {
  if (name == "all") return TimedRows::kAll;
  if (name == "total") return TimedRows::kTotal;
  if (name == "modules") return TimedRows::kModules;
  return Error{fmt::format("cannot make a table of \"{}\"", report::clean(name, false)),
               "no such name", "Use one of: all, total, modules"};
}

Result<Table> benchmark_table(const Benchmark& benchmark, const BenchmarkTableOptions& options) {
  const std::string& module = options.table.module;
  const auto is_it = [&](const TimedModule& each) { return each.path == module; };
  if (!module.empty() && std::ranges::none_of(benchmark.modules, is_it)) {
    return Error{"cannot make a table of " + report::clean(module, false),
                 "no module that was timed has this path",
                 benchmark.modules.empty() ? "No modules were timed, only the whole model"
                                           : "Use a path of the column `module`"};
  }
  std::vector<timing::Timed> rows = timing::rows_of(benchmark, options.rows, options.table);
  const bool is_aggregated = options.aggregate.value_or(benchmark.aggregate);
  Table made = is_aggregated ? timing::aggregated(benchmark, std::move(rows), options.table)
                             : timing::single(benchmark, rows, options.table);
  std::vector<std::string> notes = {timing::simulation_note(benchmark.environment)};
  notes.insert(notes.end(), benchmark.notes.begin(), benchmark.notes.end());
  made.note = tables::note_of(notes);
  return tables::chosen(std::move(made), options.table);
}

Table throughput_table(const Throughput& throughput) {
  using timing::Size;
  std::vector<Size> sizes;
  sizes.reserve(throughput.batches.size());
  for (const BatchTimes& batch : throughput.batches)
    sizes.push_back({batch.batch_size, time_stats(batch.ns)});
  tables::Sheet<Size> sheet("throughput", std::move(sizes));
  sheet.integer("batch_size", "", [](const Size& size) { return size.batch_size; });
  timing::add_stats(sheet, [](const Size& size) -> const TimeStats& { return size.stats; });
  const auto per = [](double part, double whole) {
    return whole > 0 ? TableValue(part / whole) : TableValue();
  };
  constexpr double kMsPerS = 1e3;
  sheet
      .real("sample_ms", "ms",
            [&](const Size& size) {
              return per(size.stats.mean_ms, static_cast<double>(size.batch_size));
            })
      .real("samples_per_s", "samples/s", [&](const Size& size) {
        return per(static_cast<double>(size.batch_size) * kMsPerS, size.stats.mean_ms);
      });
  timing::add_environment(sheet, throughput.environment);
  Table made = sheet.take();
  made.note = tables::note_of({timing::simulation_note(throughput.environment)});
  return made;
}

}  // namespace layertrace
