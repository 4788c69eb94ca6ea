// A comparison as a table.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/tables/sheet.h"

namespace layertrace {
namespace comparison {
namespace {

struct Line {
  const ComparedRow* row = nullptr;
  const ComparedFigure* before = nullptr;
  const ComparedFigure* after = nullptr;
  const std::string* name = nullptr;  // of the run
};

}  // namespace
}  // namespace comparison

Table comparison_table(const Comparison& comparison) {
  using comparison::Line;
  std::vector<Line> lines;
  for (const ComparedRow& row : comparison.rows) {
    for (std::size_t i = 1; i < row.runs.size(); ++i)
      lines.push_back({&row, row.runs.data(), &row.runs[i], &comparison.names[i]});
  }
  tables::Sheet<Line> sheet("comparison", std::move(lines));
  sheet.text("kind", [](const Line& line) { return line.row->kind; });
  sheet.text("name", [](const Line& line) { return line.row->name; });
  sheet.text("type", [](const Line& line) { return tables::text_if_any(line.row->type); });
  sheet.text("metric", [](const Line& line) { return line.row->metric; });
  sheet.text("unit", [](const Line& line) { return tables::text_if_any(line.row->unit); });
  sheet.text("run", [](const Line& line) { return *line.name; });
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
  sheet.text("verdict", [](const Line& line) { return verdict_name(line.after->verdict); });
  return sheet.take();
}

}  // namespace layertrace
