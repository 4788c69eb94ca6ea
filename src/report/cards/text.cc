// Cards as boxed tables for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/cards/notes.h"
#include "report/cards/units.h"
#include "report/table.h"
#include "report/text.h"

namespace layertrace {
namespace cards {
namespace {

using report::clean;
using report::display_width;
using report::Tone;

// The characters of a box: lines, and where they meet.
struct Lines {
  std::string_view across;
  std::string_view down;
  std::string_view corners[4];  // as one reads
  std::string_view left;
  std::string_view right;
  std::string_view from_above;  // an edge without columns above, with columns below
  std::string_view cross;
  std::string_view from_below;
};
constexpr Lines kBox{"─", "│", {"┌", "┐", "└", "┘"}, "├", "┤", "┬", "┼", "┴"};
constexpr Lines kAsciiBox{"-", "|", {"+", "+", "+", "+"}, "+", "+", "+", "+", "+"};

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;
};
using Row = std::vector<Cell>;

class Box {
 public:
  explicit Box(const CardTextOptions& options)
      : lines_(options.ascii ? kAsciiBox : kBox), color_(options.color) {}

  void title(std::string text) { titles_.push_back(std::move(text)); }
  void heading(Row row) { heading_ = std::move(row); }
  void row(Row row) { rows_.push_back(std::move(row)); }

  std::string text() {
    fit();
    edge(lines_.corners[0], lines_.across, lines_.corners[1]);
    for (const std::string& title : titles_) {
      out_ += fmt::format("{} {}{} {}\n", lines_.down, report::paint(title, Tone::kBold, color_),
                          std::string(inner_ - 2 - display_width(title), ' '), lines_.down);
    }
    edge(lines_.left, lines_.from_above, lines_.right);
    if (!heading_.empty()) {
      put(heading_);
      edge(lines_.left, lines_.cross, lines_.right);
    }
    for (const Row& row : rows_) put(row);
    edge(lines_.corners[2], lines_.from_below, lines_.corners[3]);
    return std::move(out_);
  }

 private:
  // Columns as wide as what they hold; the first takes what a title needs beyond that.
  void fit() {
    std::vector<const Row*> all;
    if (!heading_.empty()) all.push_back(&heading_);
    for (const Row& row : rows_) all.push_back(&row);
    widths_.assign(1, 0);
    for (const Row* row : all) {
      widths_.resize(std::max(widths_.size(), row->size()));
      for (std::size_t i = 0; i < row->size(); ++i)
        widths_[i] = std::max(widths_[i], display_width((*row)[i].text));
    }
    std::size_t title = 0;
    for (const std::string& each : titles_) title = std::max(title, display_width(each) + 2);
    inner_ = widths_.size() - 1;
    for (const std::size_t width : widths_) inner_ += width + 2;
    if (inner_ < title) {
      widths_[0] += title - inner_;
      inner_ = title;
    }
  }

  void edge(std::string_view first, std::string_view between, std::string_view last) {
    out_ += first;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      if (i != 0) out_ += between;
      for (std::size_t j = 0; j < widths_[i] + 2; ++j) out_ += lines_.across;
    }
    out_ += last;
    out_ += '\n';
  }

  // The first column is text, the others are figures.
  void put(const Row& row) {
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      const Cell& cell = i < row.size() ? row[i] : Cell{};
      const std::string room(widths_[i] - display_width(cell.text), ' ');
      const std::string text = report::paint(cell.text, cell.tone, color_);
      out_ += fmt::format("{} {}{} ", lines_.down, i == 0 ? text : room, i == 0 ? room : text);
    }
    out_ += lines_.down;
    out_ += '\n';
  }

  const Lines& lines_;
  bool color_;
  std::vector<std::string> titles_;
  Row heading_;
  std::vector<Row> rows_;
  std::vector<std::size_t> widths_;
  std::size_t inner_ = 0;
  std::string out_;
};

std::string in_unit(const std::optional<double>& value, const MetricUnit& unit, bool ascii) {
  if (!value) return std::string(report::glyphs_for(ascii).dash);
  return figure(*value / unit.size);
}

void put_notes(std::string& out, const ModelCard& card, std::string_view of, bool ascii) {
  const auto put = [&](const std::string& note) {
    out += fmt::format("Note{}: {}.\n", of, clean(note, ascii));
  };
  for (const Error& failure : card.failures) put(failure.message());
  for (const std::string& note : card.notes) put(note);
}

// "4.00× better", "-0.0050 worse".
Cell score_cell(const ComparedMetric& row, const ComparedMetric::Side& side, const MetricUnit& unit,
                bool ascii) {
  const report::Glyphs& glyphs = report::glyphs_for(ascii);
  if (side.verdict == Verdict::kUnknown) return {std::string(glyphs.dash), Tone::kDim};
  std::string text;
  if (side.score && row.info.comparison == MetricComparison::kDifference) {
    const double difference = *side.score / unit.size;
    text = (difference > 0 ? "+" : "") + figure(difference) + ' ';
  } else if (side.score) {
    text = fmt::format("{:.2f}{} ", *side.score, glyphs.times);
  }
  text += verdict_name(side.verdict);
  const Tone tone = side.verdict == Verdict::kBetter  ? Tone::kBold
                    : side.verdict == Verdict::kWorse ? Tone::kHot
                                                      : Tone::kDim;
  return {std::move(text), tone};
}

}  // namespace
}  // namespace cards

std::string card_text(const ModelCard& card, const CardTextOptions& options) {
  using namespace cards;
  Box box(options);
  box.title(title_of(card, options.ascii));
  for (const MetricValue& metric : card.metrics) {
    const MetricUnit unit = shown_unit(metric.info, metric.value.value_or(0));
    box.row({{clean(heading_of(metric.info, unit), options.ascii)},
             {in_unit(metric.value, unit, options.ascii)}});
  }
  std::string out = box.text();
  put_notes(out, card, "", options.ascii);
  return out;
}

std::string card_text(const CardComparison& comparison, const CardTextOptions& options) {
  using namespace cards;
  Box box(options);
  Row heading = {{"", Tone::kDim}};
  for (std::size_t i = 0; i < comparison.cards.size(); ++i) {
    box.title(title_of(comparison.cards[i], options.ascii));
    heading.push_back({clean(comparison.cards[i].name, options.ascii), Tone::kDim});
    if (i != 0) heading.push_back({"against the first", Tone::kDim});
  }
  box.heading(std::move(heading));
  for (const ComparedMetric& row : comparison.rows) {
    const MetricUnit unit = unit_of(row);
    Row cells = {{clean(heading_of(row.info, unit), options.ascii)}};
    for (std::size_t i = 0; i < row.models.size(); ++i) {
      cells.push_back({in_unit(row.models[i].value, unit, options.ascii)});
      if (i != 0) cells.push_back(score_cell(row, row.models[i], unit, options.ascii));
    }
    box.row(std::move(cells));
  }
  std::string out = box.text();
  for (const ModelCard& card : comparison.cards)
    put_notes(out, card, " on " + clean(card.name, options.ascii), options.ascii);
  for (const std::string& note : comparison.notes)
    out += fmt::format("Note: {}.\n", clean(note, options.ascii));
  return out;
}

}  // namespace layertrace
