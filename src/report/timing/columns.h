// Columns that tables of times share.
#pragma once

#include <string>

#include <layertrace/timing.h>

#include "report/ledger.h"
#include "report/tables/sheet.h"

namespace layertrace::timing {

inline constexpr double kNsPerMs = 1e6;

// That the times are a simulation's; "" where they are not.
inline std::string simulation_note(const TimingEnvironment& environment) {
  if (!environment.simulated) return "";
  return report::simulation_note("timed", environment.gpu, /*ascii=*/false);
}

// `stats_of(row)` gives the TimeStats of a row. Those that a reader misses least are details.
template <typename Row, typename StatsOf>
void add_stats(tables::Sheet<Row>& sheet, const StatsOf& stats_of) {
  sheet.integer("iterations", "", [&](const Row& row) { return stats_of(row).count; }).detail();
  const auto add = [&](const char* name, double TimeStats::*figure, bool is_detail) {
    sheet.real(name, "ms", [&](const Row& row) {
      const TimeStats& stats = stats_of(row);
      return stats.count > 0 ? tables::cell(stats.*figure) : TableValue();
    });
    if (is_detail) sheet.detail();
  };
  add("mean_ms", &TimeStats::mean_ms, false);
  add("std_ms", &TimeStats::stdev_ms, false);
  add("min_ms", &TimeStats::min_ms, false);
  add("p5_ms", &TimeStats::p5_ms, true);
  add("p25_ms", &TimeStats::p25_ms, true);
  add("median_ms", &TimeStats::median_ms, false);
  add("p75_ms", &TimeStats::p75_ms, true);
  add("p90_ms", &TimeStats::p90_ms, true);
  add("p95_ms", &TimeStats::p95_ms, false);
  add("p99_ms", &TimeStats::p99_ms, false);
  add("max_ms", &TimeStats::max_ms, false);
}

// The same in each row, so that rows of several machines can stand in one table.
template <typename Row>
void add_environment(tables::Sheet<Row>& sheet, const TimingEnvironment& environment) {
  const auto text = [&](const char* name, const std::string& value) {
    sheet.text(name, [&](const Row& /*row*/) { return tables::text_if_any(value); }).detail();
  };
  const auto count = [&](const char* name, const char* unit, std::uint64_t value) {
    sheet.integer(name, unit, [=](const Row& /*row*/) { return value; }).detail();
  };
  text("device", environment.device);
  text("gpu", environment.gpu);
  sheet.boolean("simulated", [&](const Row& /*row*/) { return environment.simulated; }).detail();
  count("intra_op_threads", "", environment.intra_op_threads);
  count("inter_op_threads", "", environment.inter_op_threads);
  text("host_name", environment.host_name);
  text("os", environment.os);
  text("os_release", environment.os_release);
  text("cpu", environment.cpu);
  count("cpu_count", "", environment.cpu_count);
  count("memory_bytes", "bytes", environment.memory_bytes);
  text("torch_version", environment.torch_version);
  text("layertrace_version", environment.layertrace_version);
  text("python_version", environment.python_version);
  text("command", environment.command);
  text("commit", environment.commit);
  text("run_name", environment.run_name);
  text("created", environment.created);
}

}  // namespace layertrace::timing
