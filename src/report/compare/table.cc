// A comparison as a table.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/ledger.h"
#include "report/tables/makers.h"
#include "report/tables/sheet.h"

namespace layertrace {
namespace comparison {
namespace {

struct Line {
  const ComparedRow* row = nullptr;
  const ComparedFigure* before = nullptr;
  const ComparedFigure* after = nullptr;
  std::size_t run = 0;
  std::string_view verdict = {};
};

// What one of the two alone has, as rows without figures.
std::vector<Line> one_sided(const Comparison& comparison, std::vector<ComparedRow>& rows) {
  static const ComparedFigure kNothing;
  rows.reserve(comparison.not_in_all.size());  // lines point into it
  std::vector<Line> lines;
  for (const NotInAll& each : comparison.not_in_all) {
    const auto has_it = [&](std::size_t run) {
      return std::ranges::find(each.runs, run) != each.runs.end();
    };
    const bool is_metric = each.kind == "metric";
    rows.push_back({.kind = each.kind,
                    .name = each.name,
                    .type = "",
                    .metric = is_metric ? each.name : "",
                    .unit = "",
                    .runs = {}});
    for (std::size_t i = 1; i < comparison.names.size(); ++i) {
      if (has_it(0) == has_it(i)) continue;
      lines.push_back(
          {&rows.back(), &kNothing, &kNothing, i, has_it(0) ? "only before" : "only after"});
    }
  }
  return lines;
}

std::string note_of(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const std::string& device : comparison.simulated) {
    if (device.empty()) continue;
    lines.push_back(report::simulation_note("recorded", device, /*ascii=*/false));
    break;  // a note says of each run where it ran
  }
  for (const std::string& note : comparison.notes) lines.push_back("Note: " + note + ".");
  return tables::note_of(lines);
}

}  // namespace
}  // namespace comparison

Table comparison_table(const Comparison& comparison) {
  using comparison::Line;
  std::vector<Line> lines;
  for (const ComparedRow& row : comparison.rows) {
    for (std::size_t i = 1; i < row.runs.size(); ++i) {
      lines.push_back({&row, row.runs.data(), &row.runs[i], i, verdict_name(row.runs[i].verdict)});
    }
  }
  std::vector<ComparedRow> rows;
  std::ranges::copy(comparison::one_sided(comparison, rows), std::back_inserter(lines));
  tables::Sheet<Line> sheet("comparison", std::move(lines));
  sheet.text("kind", [](const Line& line) { return line.row->kind; });
  sheet.text("name", [](const Line& line) { return line.row->name; });
  sheet.text("type", [](const Line& line) { return tables::text_if_any(line.row->type); });
  sheet.text("metric", [](const Line& line) { return tables::text_if_any(line.row->metric); });
  sheet.text("unit", [](const Line& line) { return tables::text_if_any(line.row->unit); });
  sheet.text("run", [&](const Line& line) { return comparison.names[line.run]; });
  const auto real = [&](const char* name, const ComparedFigure* Line::*side,
                        double ComparedFigure::*figure) {
    sheet.real(name, "", [=](const Line& line) {
      const ComparedFigure& from = *(line.*side);
      return from.known ? tables::cell(from.*figure) : TableValue();
    });
  };
  real("before", &Line::before, &ComparedFigure::value);
  real("before_low", &Line::before, &ComparedFigure::low);
  sheet.detail();
  real("before_high", &Line::before, &ComparedFigure::high);
  sheet.detail();
  real("after", &Line::after, &ComparedFigure::value);
  real("after_low", &Line::after, &ComparedFigure::low);
  sheet.detail();
  real("after_high", &Line::after, &ComparedFigure::high);
  sheet.detail();
  sheet.real("change", "share", [](const Line& line) {
    const bool is_known =
        line.before->known && line.after->known && std::isfinite(line.after->change);
    return is_known ? tables::cell(line.after->change) : TableValue();
  });
  sheet.text("verdict", [](const Line& line) { return line.verdict; });
  sheet.boolean("simulated", [&](const Line& line) {
    const auto is_simulated = [&](std::size_t run) {
      return run < comparison.simulated.size() && !comparison.simulated[run].empty();
    };
    return is_simulated(0) || is_simulated(line.run);
  });
  sheet.detail();
  Table made = sheet.take();
  made.note = comparison::note_of(comparison);
  return made;
}

}  // namespace layertrace
