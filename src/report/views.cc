// The columns that a tree shows: those of a view and those that were asked for, or the default ones
// that have something to say.
#include <algorithm>
#include <array>
#include <string_view>

#include "report/columns.h"
#include "report/device_sentences.h"
#include "report/names.h"

namespace layertrace {
namespace report {
namespace {

struct ViewInfo {
  View view;
  std::string_view name;
};
constexpr std::array kViews{
    ViewInfo{View::kTime, "time"},     ViewInfo{View::kCost, "cost"},
    ViewInfo{View::kMemory, "memory"}, ViewInfo{View::kRoofline, "roofline"},
    ViewInfo{View::kAll, "all"},
};

struct StyleInfo {
  TreeStyle style;
  std::string_view name;
};
constexpr std::array kStyles{StyleInfo{TreeStyle::kColumns, "columns"},
                             StyleInfo{TreeStyle::kBrackets, "brackets"}};

using Columns = std::vector<Column>;

bool has_phase(const Profile& profile, Phase phase) {
  return std::ranges::any_of(profile.layers,
                             [phase](const Layer& layer) { return !layer.phase(phase).empty(); });
}

void add(Columns& columns, std::initializer_list<Column> more) {
  columns.insert(columns.end(), more);
}

// What a model is and computes, rather than how long that took.
Columns summary_columns(const Profile& profile) {
  Columns columns{Column::kType, Column::kParams};
  if (!was_called(profile)) return columns;
  add(columns, {Column::kInputShapes, Column::kOutputShapes, Column::kForwardFlops});
  const bool has_backward = std::ranges::any_of(profile.layers, [](const Layer& layer) {
    return !layer.phase(Phase::kBackward).amounts.empty();
  });
  if (has_backward) columns.push_back(Column::kBackwardFlops);
  return columns;
}

void add_counts(Columns& columns, const Profile& profile) {
  columns.push_back(Column::kCalls);
  if (!profile.run.device.empty()) {
    if (!has_events_only(profile)) columns.push_back(Column::kKernels);
  } else if (profile.run.ops) {
    columns.push_back(Column::kActivities);
  }
}

Columns default_columns(const Profile& profile) {
  if (profile.run.summary) return summary_columns(profile);
  Columns columns{Column::kType};
  if (has_phases_for_layers(profile)) {
    // Each layer is of one phase, and some are of others than forward and backward.
    if (!profile.run.device.empty()) columns.push_back(Column::kGpuTotal);
    columns.push_back(Column::kTotal);
    add_counts(columns, profile);
    return columns;
  }
  if (!profile.run.device.empty()) add(columns, {Column::kGpuForward, Column::kGpuBackward});
  add(columns, {Column::kForward, Column::kBackward});
  if (has_phase(profile, Phase::kRecompute)) columns.push_back(Column::kRecompute);
  add_counts(columns, profile);
  if (has_amounts(profile))
    add(columns, {Column::kForwardFlops, Column::kBackwardFlops, Column::kTflops});
  return columns;
}

Columns time_columns(const Profile& profile) {
  Columns columns{Column::kType};
  if (!profile.run.device.empty())
    add(columns, {Column::kGpuForward, Column::kGpuBackward, Column::kGpuTotal});
  add(columns, {Column::kForward, Column::kBackward});
  if (has_phase(profile, Phase::kRecompute)) columns.push_back(Column::kRecompute);
  add(columns, {Column::kTotal, Column::kSelf});
  add_counts(columns, profile);
  if (!profile.run.device.empty()) add(columns, {Column::kIdle, Column::kLaunchBound});
  return columns;
}

// All but the names, which a tree has anyway, and those that are empty in every row.
Columns all_columns(const Profile& profile) {
  Columns columns;
  for (const Column column : every_column()) {
    if (column != Column::kName && column != Column::kPath && has_any(column, profile))
      columns.push_back(column);
  }
  return columns;
}

Columns view_columns(View view, const Profile& profile) {
  switch (view) {
    case View::kTime:
      return time_columns(profile);
    case View::kCost:
      return {Column::kType,         Column::kKernelSize,   Column::kInputShapes,
              Column::kOutputShapes, Column::kParams,       Column::kParamsTrainable,
              Column::kMacs,         Column::kForwardFlops, Column::kBackwardFlops,
              Column::kFlops,        Column::kActivations};
    case View::kMemory:
      return {Column::kType,       Column::kParams,     Column::kParamBytes, Column::kActivations,
              Column::kMemoryPeak, Column::kMemoryKept, Column::kBytes};
    case View::kRoofline:
      return {Column::kType,      Column::kShare,        Column::kFlops,      Column::kBytes,
              Column::kIntensity, Column::kTflops,       Column::kGbs,        Column::kRoof,
              Column::kPeakShare, Column::kComputeShare, Column::kUnexplained};
    case View::kAll:
      break;
  }
  return all_columns(profile);
}

}  // namespace

std::vector<Column> chosen_columns(const TreeOptions& options, const Profile& profile) {
  if (!options.view) return options.columns.empty() ? default_columns(profile) : options.columns;
  Columns columns = view_columns(*options.view, profile);
  for (const Column column : options.columns) {
    if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
  }
  return columns;
}

}  // namespace report

Result<View> parse_view(std::string_view name) {
  const auto* found = report::find_name(report::kViews, name);
  if (found == report::kViews.end()) return report::unknown_name("view", name, report::kViews);
  return found->view;
}

Result<TreeStyle> parse_tree_style(std::string_view name) {
  const auto* found = report::find_name(report::kStyles, name);
  if (found == report::kStyles.end()) return report::unknown_name("style", name, report::kStyles);
  return found->style;
}

}  // namespace layertrace
