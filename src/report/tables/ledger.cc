// What a report must say of itself, as rows: of activities and autograd nodes those that have a
// layer and those that have none, by cause; what of the records is missing; why GPUs were idle.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "report/tables/makers.h"
#include "report/tables/sheet.h"

namespace layertrace::tables {
namespace {

struct LedgerRow {
  std::string of;
  std::string cause;
  double count = 0;
  TableValue ns = {};
  double whole = 0;  // what the share is of: the time where there is one, else the count
  std::vector<Unattributed::Name> names = {};
};

using Rows = std::vector<LedgerRow>;

void add_activities(const Health& health, Rows& rows) {
  if (health.activities == 0) return;
  std::uint64_t count = health.activities;
  std::uint64_t ns = health.activity_ns;
  for (const Unattributed& group : health.unattributed) {
    count -= std::min(count, group.count);
    ns -= std::min(ns, group.ns);
  }
  for (const Unattributed& group : health.rejected) count -= std::min(count, group.count);
  const auto whole = static_cast<double>(health.activity_ns);
  rows.push_back({"activities", "attributed", static_cast<double>(count), cell(ns), whole});
  if (health.inferred > 0) {
    rows.push_back({"activities", "attributed: of these inferred",
                    static_cast<double>(health.inferred), cell(health.inferred_ns), whole});
  }
  for (const Unattributed& group : health.unattributed) {
    rows.push_back({"activities", group.cause, static_cast<double>(group.count), cell(group.ns),
                    whole, group.names});
  }
  for (const Unattributed& group : health.rejected) {
    rows.push_back(
        {"activities", "could not be kept: " + group.cause, static_cast<double>(group.count)});
  }
}

void add_nodes(const Health& health, Rows& rows) {
  if (health.nodes == 0) return;
  std::uint64_t count = health.nodes;
  for (const Unattributed& group : health.unattributed_nodes) count -= std::min(count, group.count);
  const auto whole = static_cast<double>(health.nodes);
  rows.push_back({"autograd nodes", "attributed", static_cast<double>(count), {}, whole});
  for (const Unattributed& group : health.unattributed_nodes) {
    rows.push_back(
        {"autograd nodes", group.cause, static_cast<double>(group.count), {}, whole, group.names});
  }
}

// Of an imported trace: what became of its events.
void add_source(const SourceEvents& source, Rows& rows) {
  if (source.events == 0) return;
  const auto whole = static_cast<double>(source.events);
  rows.push_back({"events of the source", "kept", static_cast<double>(source.kept), {}, whole});
  if (source.merged > 0) {
    rows.push_back(
        {"events of the source", "parts of those", static_cast<double>(source.merged), {}, whole});
  }
  for (const Unattributed& group : source.left_out) {
    rows.push_back({"events of the source",
                    "left out: " + group.cause,
                    static_cast<double>(group.count),
                    {},
                    whole});
  }
}

void add_records(const Health& health, Rows& rows) {
  if (health.emitted > 0 && health.source.events == 0) {
    const auto whole = static_cast<double>(health.emitted);
    rows.push_back({"records", "kept", static_cast<double>(health.recorded), {}, whole});
    if (health.dropped > 0)
      rows.push_back({"records", "dropped", static_cast<double>(health.dropped), {}, whole});
  }
  const GpuHealth& gpu = health.gpu;
  const std::array<std::tuple<const char*, const char*, std::uint64_t>, 13> counts{{
      {"scopes", "left by an exception", health.thrown_scopes},
      {"scopes", "still open when the recording ended", health.cut_scopes},
      {"GPU records", "dropped by CUPTI", gpu.dropped},
      {"GPU records", "buffers lost", gpu.buffers_lost},
      {"GPU records", "no buffer was free", gpu.no_buffer},
      {"GPU records", "of unknown kinds", gpu.unknown},
      {"GPU records", "without times", gpu.untimed},
      {"GPU records", "end before they begin", gpu.reversed},
      {"GPU records", "begin before they were asked for", gpu.early},
      {"GPU records", "their clock was set", gpu.clock_set},
      {"GPU records", "asked for while nothing was recorded", gpu.outside_steps},
      {"GPU events", "pairs missing", gpu.events_missed},
      {"GPU events", "pairs not made while a stream was captured", gpu.events_capturing},
  }};
  for (const auto& [of, cause, count] : counts) {
    if (count > 0) rows.push_back({of, cause, static_cast<double>(count)});
  }
}

// Of all layers and phases, per step.
void add_idle(const Profile& profile, Rows& rows) {
  double whole = 0;
  for (const Idle& idle : profile.idle) whole += idle.ns;
  for (std::size_t i = 0; i < kIdleCauseCount; ++i) {
    const auto cause = static_cast<IdleCause>(i);
    double ns = 0;
    double gaps = 0;
    for (const Idle& idle : profile.idle) {
      ns += idle.cause == cause ? idle.ns : 0;
      gaps += idle.cause == cause ? idle.gaps : 0;
    }
    if (ns > 0) {
      rows.push_back(
          {"GPU idle, per step", std::string(idle_cause_name(cause)), gaps, cell(ns), whole});
    }
  }
}

std::string names_text(const LedgerRow& row) {
  std::string out;
  for (const Unattributed::Name& name : row.names)
    out += fmt::format("{}{} ×{}", out.empty() ? "" : ", ", name.name, name.count);
  return out;
}

TableValue ledger_share(const LedgerRow& row) {
  if (row.whole <= 0) return {};
  double part = row.count;
  if (const auto* ns = std::get_if<std::int64_t>(&row.ns)) part = static_cast<double>(*ns);
  if (const auto* ns = std::get_if<double>(&row.ns)) part = *ns;
  return part / row.whole;
}

}  // namespace

Table ledger_table(const Profile& profile, const TableOptions& /*options*/) {
  Rows rows;
  add_activities(profile.health, rows);
  add_nodes(profile.health, rows);
  add_source(profile.health.source, rows);
  add_records(profile.health, rows);
  add_idle(profile, rows);
  Sheet<LedgerRow> sheet("ledger", std::move(rows));
  sheet.text("of", [](const LedgerRow& row) { return row.of; })
      .text("cause", [](const LedgerRow& row) { return row.cause; })
      .real("count", "", [](const LedgerRow& row) { return row.count; })
      .real("total_ns", "ns", [](const LedgerRow& row) { return row.ns; })
      .real("share", "share", ledger_share)
      .text("names", [](const LedgerRow& row) { return text_if_any(names_text(row)); });
  return sheet.take();
}

}  // namespace layertrace::tables
