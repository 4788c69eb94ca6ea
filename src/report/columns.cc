#include "report/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "report/column_table.h"
#include "report/device_sentences.h"
#include "report/figures.h"
#include "report/names.h"
#include "report/numbers.h"
#include "roofline/rates.h"

namespace layertrace {
namespace report {
namespace {

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
    SortInfo{SortKey::kGpu, "gpu"},
    SortInfo{SortKey::kFlops, "flops"},
    SortInfo{SortKey::kBytes, "bytes"},
    SortInfo{SortKey::kParams, "params"},
    SortInfo{SortKey::kMemory, "memory"},
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
  if (column == Column::kGpuTotal) return Column::kGpuEventTotal;
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

// "4727872", which people compare with other tools' digit by digit.
std::string exact_count(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53: whole doubles up to here are exact
  if (value >= 0 && value <= kExact && value == std::floor(value))
    return fmt::format("{}", static_cast<std::uint64_t>(value));
  return fmt::format("{:.6g}", value);
}

// As in other tools' trees.
std::string label_of(const ColumnInfo& info) {
  switch (info.column) {
    case Column::kParams:
      return "Parameters";
    case Column::kKernelSize:
      return "Kernel Size";
    case Column::kInputShapes:
      return "Input Size";
    case Column::kOutputShapes:
      return "Output Size";
    case Column::kActivations:
      return "Activations";
    default:
      break;
  }
  std::string label(info.title);
  if (label[0] >= 'a' && label[0] <= 'z') label[0] = static_cast<char>(label[0] - 'a' + 'A');
  return label;
}

double leading_ns(const Figures& figures, const CellStyle& style) {
  if (!style.has_gpu) return figures.total_ns;
  return style.events_only ? figures.event_total_ns : figures.gpu_total_ns;
}

// Digits align where the unit is missing, or one letter shorter.
std::string aligned_si(double value) {
  const std::string text = format_si(value);
  return text.find(' ') == std::string::npos ? text + "  " : text;
}

// CUDA events tell how long layers took, and nothing of what ran.
bool needs_kernels(Column column) {
  switch (column) {
    case Column::kKernels:
    case Column::kCopies:
    case Column::kLaunches:
    case Column::kIdle:
    case Column::kLaunchBound:
    case Column::kActivities:
    case Column::kActivityTime:
    case Column::kBusy:
      return true;
    default:
      return false;
  }
}

bool is_known(Column column, const CellStyle& style) {
  if (style.events_only && needs_kernels(column)) return false;
  return style.has_gpu || !is_of_gpu(column);
}

std::string place_text(Column column, const Figures& figures, const CellStyle& style) {
  const roofline::Placement at = roofline::place(figures.work, figures.work_ns, style.device);
  const std::string none(style.glyphs.dash);
  switch (column) {
    case Column::kTflops:
      return at.flops_per_s > 0 ? aligned_si(at.flops_per_s) : none;
    case Column::kGbs:
      return at.bytes_per_s > 0 ? aligned_si(at.bytes_per_s) : none;
    case Column::kIntensity:
      return at.intensity > 0 ? format_si(at.intensity) : none;
    case Column::kPeakShare:
      return at.roof != Roof::kNone ? format_share(at.share) : none;
    case Column::kComputeShare:
      return at.compute_share > 0 ? format_share(at.compute_share) : none;
    case Column::kUnexplained:
      return at.roof != Roof::kNone ? time_and_share(at.unexplained_ns, style) : none;
    default:
      return at.roof != Roof::kNone ? std::string(roof_name(at.roof)) : none;
  }
}

}  // namespace

CellStyle cell_style(const Profile& profile, const Glyphs& glyphs) {
  return {glyphs,         share_base_ns(profile),   has_activities(profile.run),
          profile.device, has_events_only(profile), !profile.run.device.empty()};
}

TableColumn table_column(Column column) {
  const ColumnInfo& info = info_of(column);
  return {std::string(info.title), info.kind == Kind::kText, info.importance, label_of(info)};
}

std::span<const Column> every_column() {
  static const auto kAll = [] {
    std::array<Column, kColumns.size()> all{};
    std::ranges::transform(kColumns, all.begin(), &ColumnInfo::column);
    return all;
  }();
  return kAll;
}

bool is_text(Column column) { return info_of(column).kind == Kind::kText; }

bool is_time(Column column) {
  const Kind kind = info_of(column).kind;
  return kind == Kind::kTime || kind == Kind::kActivityTime;
}

bool is_of_gpu(Column column) {
  switch (column) {
    case Column::kGpuForward:
    case Column::kGpuBackward:
    case Column::kGpuTotal:
    case Column::kGpuEventForward:
    case Column::kGpuEventBackward:
    case Column::kGpuEventTotal:
    case Column::kKernels:
    case Column::kCopies:
    case Column::kLaunches:
    case Column::kIdle:
    case Column::kLaunchBound:
      return true;
    default:
      return false;
  }
}

bool is_counted(Column column) {
  const Kind kind = info_of(column).kind;
  const bool is_params = column == Column::kParams || column == Column::kParamsTrainable ||
                         column == Column::kParamBytes;
  return column == Column::kInputShapes || column == Column::kOutputShapes ||
         kind == Kind::kOfDevice || kind == Kind::kBytes ||
         ((kind == Kind::kAmount || kind == Kind::kMemory) && !is_params);
}

std::string_view column_name(Column column) { return info_of(column).name; }

Cell figure_cell(Column column, const Figures& figures, const CellStyle& style) {
  if (style.events_only) column = by_events(column);
  const ColumnInfo& info = info_of(column);
  const Kind kind = info.kind;
  if (!is_known(column, style)) return {std::string(style.glyphs.dash)};
  if (kind == Kind::kOfDevice) return {place_text(column, figures, style)};
  if (kind == Kind::kShareOfStep) {
    const double ns = leading_ns(figures, style);
    const bool is_known = ns > 0 && style.step_ns > 0;
    return {is_known ? format_share(ns / style.step_ns) : std::string(style.glyphs.dash)};
  }
  const double value = figures.*info.value;
  if (counts_activities(kind) && !style.ops) return {std::string(style.glyphs.dash)};
  if (kind == Kind::kCount || kind == Kind::kActivityCount) return {format_count(value)};
  if (value == 0) return {std::string(style.glyphs.dash)};
  if (kind == Kind::kAmount) return {aligned_si(value)};
  if (kind == Kind::kBytes || kind == Kind::kMemory)
    return {format_bytes(static_cast<std::uint64_t>(value))};
  if (kind == Kind::kShareOfHost) {
    const double host_ns = figures.forward_ns + figures.backward_ns;
    return {host_ns == 0 ? std::string(style.glyphs.dash) : format_share(value / host_ns)};
  }
  return {time_and_share(value, style),
          style.step_ns > 0 ? heat(value / style.step_ns) : Tone::kPlain};
}

std::string bracket_text(Column column, const Figures& figures, const CellStyle& style) {
  if (style.events_only) column = by_events(column);
  const ColumnInfo& info = info_of(column);
  if (info.value != nullptr && is_known(column, style)) {
    const double value = figures.*info.value;
    if (is_time(column)) return value > 0 ? format_time(value, style.glyphs) : "";
    if (info.kind == Kind::kCount) return exact_count(value);
    if (info.kind == Kind::kAmount) return value > 0 ? exact_count(value) : "";
  }
  const std::string text = figure_cell(column, figures, style).text;
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos || text == style.glyphs.dash) return "";
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

double time_of(Column column, const Figures& figures, const CellStyle& style) {
  if (is_of_gpu(column) && !style.has_gpu) return 0;
  return figures.*info_of(style.events_only ? by_events(column) : column).value;
}

bool has_any(Column column, const Profile& profile) {
  const CellStyle style = cell_style(profile, glyphs_for(true));
  return std::ranges::any_of(profile.layers, [&](const Layer& layer) {
    if (column == Column::kKernelSize) return !layer.kernel_size.empty();
    if (column == Column::kInputShapes || column == Column::kOutputShapes)
      return !layer.shapes.empty();
    if (is_text(column)) return true;
    const Figures figures = figures_of(layer);
    const ColumnInfo& info = info_of(column);
    if (info.value != nullptr && figures.*info.value == 0) return false;
    return !bracket_text(column, figures, style).empty();
  });
}

std::string time_and_share(double ns, const CellStyle& style) {
  std::string time = format_time(ns, style.glyphs);
  if (time.ends_with(" s")) time += ' ';  // all units take two cells, so that digits align
  if (style.step_ns <= 0) return pad_left(time, 7);
  return fmt::format("{}  {}", pad_left(time, 7), pad_left(format_share(ns / style.step_ns), 6));
}

}  // namespace report

Result<Column> parse_column(std::string_view name) {
  if (const auto alias = report::find_name(report::kAliases, name); alias != report::kAliases.end())
    return alias->column;
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
