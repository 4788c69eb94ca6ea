#include "report/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "report/device_sentences.h"
#include "report/numbers.h"

namespace layertrace {
namespace report {
namespace {

enum class Kind { kText, kTime, kCount, kActivityTime, kActivityCount, kShareOfHost };

struct ColumnInfo {
  Column column;
  std::string_view name;   // on the command line
  std::string_view title;  // in the heading
  Kind kind;
  int importance;  // the lowest is the first to go where the line is too short
  double Figures::*value;
};

constexpr std::array kColumns{
    ColumnInfo{Column::kType, "type", "type", Kind::kText, 6, nullptr},
    ColumnInfo{Column::kForward, "forward", "forward", Kind::kTime, 9, &Figures::forward_ns},
    ColumnInfo{Column::kBackward, "backward", "backward", Kind::kTime, 8, &Figures::backward_ns},
    ColumnInfo{Column::kTotal, "total", "total", Kind::kTime, 7, &Figures::total_ns},
    ColumnInfo{Column::kRecompute, "recompute", "recompute", Kind::kTime, 4,
               &Figures::recompute_ns},
    ColumnInfo{Column::kSelf, "self", "self", Kind::kTime, 5, &Figures::self_ns},
    ColumnInfo{Column::kActivityTime, "activity_time", "activity time", Kind::kActivityTime, 3,
               &Figures::activity_ns},
    ColumnInfo{Column::kBusy, "busy", "busy", Kind::kActivityTime, 2, &Figures::busy_ns},
    ColumnInfo{Column::kCalls, "calls", "calls", Kind::kCount, 1, &Figures::calls},
    ColumnInfo{Column::kActivities, "activities", "activities", Kind::kActivityCount, 0,
               &Figures::activities},
    ColumnInfo{Column::kGpuForward, "gpu_forward", "GPU forward", Kind::kActivityTime, 11,
               &Figures::gpu_forward_ns},
    ColumnInfo{Column::kGpuBackward, "gpu_backward", "GPU backward", Kind::kActivityTime, 10,
               &Figures::gpu_backward_ns},
    ColumnInfo{Column::kKernels, "kernels", "kernels", Kind::kActivityCount, 0,
               &Figures::activities},
    ColumnInfo{Column::kLaunches, "launches", "launches", Kind::kActivityCount, 0,
               &Figures::launches},
    ColumnInfo{Column::kGpuEventForward, "gpu_event_forward", "GPU event forward",
               Kind::kActivityTime, 5, &Figures::event_forward_ns},
    ColumnInfo{Column::kGpuEventBackward, "gpu_event_backward", "GPU event backward",
               Kind::kActivityTime, 4, &Figures::event_backward_ns},
    ColumnInfo{Column::kIdle, "idle", "GPU idle", Kind::kActivityTime, 3, &Figures::idle_ns},
    ColumnInfo{Column::kLaunchBound, "launch_bound", "launch-bound", Kind::kShareOfHost, 3,
               &Figures::launch_idle_ns},
};

struct SortInfo {
  SortKey key;
  std::string_view name;
};

constexpr std::array kSortKeys{
    SortInfo{SortKey::kDefinition, "definition"},
    SortInfo{SortKey::kForward, "forward"},
    SortInfo{SortKey::kBackward, "backward"},
    SortInfo{SortKey::kTotal, "total"},
    SortInfo{SortKey::kSelf, "self"},
    SortInfo{SortKey::kCalls, "calls"},
    SortInfo{SortKey::kActivities, "activities"},
    SortInfo{SortKey::kName, "name"},
};

const ColumnInfo& info_of(Column column) {
  return *std::find_if(kColumns.begin(), kColumns.end(),
                       [column](const ColumnInfo& info) { return info.column == column; });
}

bool counts_activities(Kind kind) {
  return kind == Kind::kActivityTime || kind == Kind::kActivityCount || kind == Kind::kShareOfHost;
}

// What stands for kernels' times where there are none.
Column by_events(Column column) {
  if (column == Column::kGpuForward) return Column::kGpuEventForward;
  return column == Column::kGpuBackward ? Column::kGpuEventBackward : column;
}

// Where a step's time goes should meet the eye.
Tone heat(double share) {
  if (share >= 0.25) return Tone::kHot;
  return share >= 0.10 ? Tone::kWarm : Tone::kPlain;
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(width - std::min(width, used), ' ').append(text);
}

template <typename Infos>
Error unknown_name(std::string_view what, std::string_view name, const Infos& infos) {
  std::string known;
  for (const auto& info : infos) known += fmt::format("{}{}", known.empty() ? "" : ", ", info.name);
  return {fmt::format("cannot use \"{}\" as a {}", clean(name, false), what), "no such name",
          fmt::format("Use one of: {}", known)};
}

template <typename Infos>
auto find_name(const Infos& infos, std::string_view name) {
  return std::find_if(infos.begin(), infos.end(),
                      [name](const auto& info) { return info.name == name; });
}

}  // namespace

std::vector<Column> chosen_columns(const TreeOptions& options, const Profile& profile) {
  if (!options.columns.empty()) return options.columns;
  std::vector<Column> columns{Column::kType};
  if (!profile.run.device.empty())
    columns.insert(columns.end(), {Column::kGpuForward, Column::kGpuBackward});
  columns.insert(columns.end(), {Column::kForward, Column::kBackward});
  const bool recomputes =
      std::any_of(profile.layers.begin(), profile.layers.end(),
                  [](const Layer& layer) { return !layer.phase(Phase::kRecompute).empty(); });
  if (recomputes) columns.push_back(Column::kRecompute);
  columns.push_back(Column::kCalls);
  if (!profile.run.device.empty()) {
    if (!has_events_only(profile)) columns.push_back(Column::kKernels);
  } else if (profile.run.ops) {
    columns.push_back(Column::kActivities);
  }
  return columns;
}

TableColumn table_column(Column column) {
  const ColumnInfo& info = info_of(column);
  return {std::string(info.title), info.kind == Kind::kText, info.importance};
}

Cell figure_cell(Column column, const Figures& figures, const CellStyle& style) {
  if (style.events_only) column = by_events(column);
  const ColumnInfo& info = info_of(column);
  const Kind kind = info.kind;
  const double value = figures.*info.value;
  if (counts_activities(kind) && !style.ops) return {std::string(style.glyphs.dash)};
  if (kind == Kind::kCount || kind == Kind::kActivityCount) return {format_count(value)};
  if (value == 0) return {std::string(style.glyphs.dash)};
  if (kind == Kind::kShareOfHost) {
    const double host_ns = figures.forward_ns + figures.backward_ns;
    return {host_ns == 0 ? std::string(style.glyphs.dash) : format_share(value / host_ns)};
  }
  return {time_and_share(value, style),
          style.step_ns > 0 ? heat(value / style.step_ns) : Tone::kPlain};
}

std::string time_and_share(double ns, const CellStyle& style) {
  std::string time = format_time(ns, style.glyphs);
  if (time.ends_with(" s")) time += ' ';  // all units take two cells, so that digits align
  if (style.step_ns <= 0) return pad_left(time, 7);
  return fmt::format("{}  {}", pad_left(time, 7), pad_left(format_share(ns / style.step_ns), 6));
}

}  // namespace report

Result<Column> parse_column(std::string_view name) {
  const auto found = report::find_name(report::kColumns, name);
  if (found == report::kColumns.end())
    return report::unknown_name("column", name, report::kColumns);
  return found->column;
}

Result<SortKey> parse_sort_key(std::string_view name) {
  const auto found = report::find_name(report::kSortKeys, name);
  if (found == report::kSortKeys.end())
    return report::unknown_name("sort key", name, report::kSortKeys);
  return found->key;
}

}  // namespace layertrace
