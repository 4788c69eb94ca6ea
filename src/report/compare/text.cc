// A comparison for a terminal: the total, then what changed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/cards/units.h"
#include "report/compare/noise.h"
#include "report/numbers.h"
#include "report/table.h"
#include "report/text.h"

namespace layertrace {
namespace comparison {
namespace {

using report::clean;
using report::Tone;

Tone tone_of(Verdict verdict) {
  using enum Verdict;
  if (verdict == kSlower || verdict == kMore || verdict == kWorse) return Tone::kHot;
  if (verdict == kFaster || verdict == kLess || verdict == kBetter) return Tone::kBold;
  return Tone::kDim;
}

class Writer {
 public:
  Writer(const Comparison& comparison, const ComparisonTextOptions& options)
      : comparison_(comparison), options_(options), glyphs_(report::glyphs_for(options.ascii)) {}

  std::string write() {
    for (std::size_t i = 0; i < comparison_.names.size(); ++i)
      out_ += fmt::format("{}: {}\n", letter(i), clean(comparison_.names[i], options_.ascii));
    out_ += '\n';
    section("total", "Total, per step", /*all=*/true);
    section("metric", "Metrics", /*all=*/true);
    section("layer", "Layers", options_.all);
    section("kernel", "Kernels", options_.all);
    missing("metric", "Metrics");
    missing("layer", "Layers");
    missing("kernel", "Kernels");
    for (const std::string& note : comparison_.notes) sentence("Note: " + note + ".");
    sentence(
        "Times are medians; in brackets where a run's steps lie, from the fastest to as far above "
        "the "
        "median. A time has changed where one run "
        "takes longer even undisturbed than the other usually does, and by more than unchanged "
        "layers' times scatter between these runs.");
    return std::move(out_);
  }

 private:
  static std::string letter(std::size_t run) {
    constexpr std::size_t kLetters = 26;
    return run < kLetters ? std::string(1, static_cast<char>('A' + run)) : std::to_string(run + 1);
  }

  void sentence(const std::string& text) {
    for (const std::string& line : report::wrap_words(clean(text, options_.ascii), width()))
      out_ += line + '\n';
  }

  static bool has_changed(const ComparedRow& row) {
    return std::ranges::any_of(row.runs,
                               [](const ComparedFigure& side) { return is_change(side.verdict); });
  }

  void section(const char* kind, const char* title, bool all) {
    std::size_t count = 0;
    std::size_t changed = 0;
    std::vector<const ComparedRow*> shown;
    for (const ComparedRow& row : comparison_.rows) {
      if (row.kind != kind) continue;
      ++count;
      changed += has_changed(row) ? 1 : 0;
      if (all || has_changed(row)) shown.push_back(&row);
    }
    if (count == 0) return;
    std::string heading = title;
    if (kind != std::string_view("total"))
      heading += fmt::format(": {} of {} figures changed", changed, count);
    out_ += report::paint(heading, Tone::kBold, options_.color) + '\n';
    if (!shown.empty()) table(shown);
    out_ += '\n';
  }

  std::size_t width() const { return static_cast<std::size_t>(std::max(0, options_.width)); }

  // Where a line is too short, bands of noise go first; then columns, the verdict as the last.
  void table(const std::vector<const ComparedRow*>& rows) {
    const report::Table whole = table_of(rows, /*has_bands=*/true);
    const bool fits =
        width() == 0 || widest(report::render(whole, 0, false, glyphs_.ellipsis)) <= width();
    out_ += report::render(fits ? whole : table_of(rows, /*has_bands=*/false), width(),
                           options_.color, glyphs_.ellipsis);
  }

  static std::size_t widest(std::string_view lines) {
    std::size_t most = 0;
    while (!lines.empty()) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      most = std::max(most, report::display_width(lines.substr(0, end)));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
    return most;
  }

  report::Table table_of(const std::vector<const ComparedRow*>& rows, bool has_bands) const {
    report::Table table;
    report::TableRow heading;
    const auto column = [&](const std::string& title, bool left, int importance) {
      table.columns.push_back({title, left, importance, "", /*whole=*/true});
      heading.cells.push_back({title, Tone::kDim});
    };
    column("figure", true, 8);
    for (std::size_t i = 0; i < comparison_.names.size(); ++i) {
      column(letter(i), false, 6);
      if (i == 0) continue;
      column("change", false, 7);
      column("verdict", true, 9);
    }
    table.rows.push_back(std::move(heading));
    for (const ComparedRow* row : rows) table.rows.push_back(row_of(*row, has_bands));
    return table;
  }

  report::TableRow row_of(const ComparedRow& compared, bool has_bands) const {
    report::TableRow row;
    const std::string name = compared.kind == "layer" && compared.name.empty()
                                 ? compared.type
                                 : report::without_arguments(compared.name, glyphs_.ellipsis);
    row.name = {"  " + clean(name, options_.ascii)};
    row.cells.push_back({compared.metric});
    for (std::size_t i = 0; i < compared.runs.size(); ++i) {
      const ComparedFigure& side = compared.runs[i];
      row.cells.push_back(
          {side.known ? value(compared, side, has_bands) : std::string(glyphs_.dash)});
      if (i == 0) continue;
      const bool is_compared = side.known && compared.runs[0].known;
      row.cells.push_back({is_compared ? change(side.change) : std::string(glyphs_.dash),
                           is_change(side.verdict) ? Tone::kPlain : Tone::kDim});
      row.cells.push_back(
          {is_compared ? std::string(verdict_name(side.verdict)) : "", tone_of(side.verdict)});
    }
    return row;
  }

  static std::string change(double share) {
    if (std::isinf(share)) return "from 0";
    if (share == 0) return "0 %";
    return fmt::format("{:+.1f} %", share * 100);
  }

  // Of the row's largest figure, so that all are in one.
  static MetricUnit metric_unit(const ComparedRow& row) {
    double most = 0;
    for (const ComparedFigure& side : row.runs) {
      if (side.known) most = std::max(most, std::abs(side.value));
    }
    return shown_unit(row.info, most);
  }

  std::string value(const ComparedRow& row, const ComparedFigure& side, bool has_band) const {
    if (row.kind == "metric") {
      const MetricUnit unit = metric_unit(row);
      const std::string shown = cards::figure(side.value / unit.size);
      return unit.name.empty() ? shown : shown + ' ' + clean(unit.name, options_.ascii);
    }
    if (row.unit == "ms") {
      constexpr double kNsPerMs = 1e6;
      std::string middle = report::format_time(side.value * kNsPerMs, glyphs_);
      if (side.low == side.high || !has_band) return middle;
      return fmt::format(
          "{} [{}]", middle,
          report::format_time_range(side.low * kNsPerMs, side.high * kNsPerMs, glyphs_));
    }
    if (row.unit == "bytes") return report::format_bytes(static_cast<std::uint64_t>(side.value));
    if (row.unit == "FLOP") return report::format_si(side.value, "FLOP");
    return report::format_count(side.value);
  }

  // Those that one run alone has, by run.
  void missing(const char* kind, const char* title) {
    for (std::size_t i = 0; i < comparison_.names.size(); ++i) {
      std::vector<std::string> names;
      for (const NotInAll& each : comparison_.not_in_all) {
        if (each.kind == kind && std::ranges::find(each.runs, i) == each.runs.end())
          names.push_back(each.name.empty() ? "(the root)" : clean(each.name, options_.ascii));
      }
      if (names.empty()) continue;
      constexpr std::size_t kShown = 8;
      const std::size_t more = names.size() > kShown ? names.size() - kShown : 0;
      names.resize(names.size() - more);
      sentence(fmt::format("{} that {} does not have: {}{}.", title, letter(i),
                           fmt::join(names, ", "),
                           more != 0 ? fmt::format(" and {} more", more) : ""));
    }
  }

  const Comparison& comparison_;
  const ComparisonTextOptions& options_;
  const report::Glyphs& glyphs_;
  std::string out_;
};

}  // namespace
}  // namespace comparison

std::string comparison_text(const Comparison& comparison, const ComparisonTextOptions& options) {
  return comparison::Writer(comparison, options).write();
}

}  // namespace layertrace
