// tree(): a Profile as a box-drawn tree. Layers become nodes (fold_blocks.h), nodes rows of a table
// (table.h), and sentences about the whole stand above and below it (ledger.h).
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>

#include "report/columns.h"
#include "report/device_sentences.h"
#include "report/filter.h"
#include "report/fold_blocks.h"
#include "report/ledger.h"
#include "report/lookup.h"
#include "report/numbers.h"
#include "report/row_texts.h"
#include "report/table.h"
#include "report/text.h"

namespace layertrace {
namespace report {
namespace {

constexpr std::size_t kNarrowest = 20;  // a terminal that claims less is not believed

class TreeWriter {
 public:
  TreeWriter(const Profile& profile, const TreeOptions& options)
      : profile_(profile),
        options_(options),
        glyphs_(glyphs_for(options.ascii)),
        style_(cell_style(profile, glyphs_)),
        columns_(chosen_columns(options, profile)),
        texts_(profile, columns_, style_) {}

  std::string write(const std::vector<int>& roots) {
    fill_table(roots);
    return sentences(heading(profile_, glyphs_)) + '\n' + table_text() + sentences(below());
  }

  std::string write_html(const std::vector<int>& roots) {
    fill_table(roots);
    return "<div class=\"layertrace\">\n" + html_sentences(heading(profile_, glyphs_)) +
           table_html() + html_sentences(below()) + "</div>\n";
  }

 private:
  // What there is to say below the table: why columns are empty, then of the whole.
  std::vector<Sentence> below() const {
    std::vector<Sentence> all = ledger(profile_, glyphs_);
    if (!filtered_.sentence.empty()) all.insert(all.begin(), {filtered_.sentence, Tone::kWarm});
    if (has_amounts(profile_) || !was_called(profile_)) return all;
    std::vector<std::string_view> empty;
    for (const Column column : columns_) {
      if (is_counted(column)) empty.push_back(column_name(column));
    }
    if (empty.empty()) return all;
    all.insert(
        all.begin(),
        {fmt::format("Operators were not counted, so there is nothing to show for {}: record "
                     "with count=\"first\" or \"always\" (layertrace run --count first).",
                     fmt::join(empty, ", ")),
         Tone::kWarm});
    return all;
  }

  void fill_table(const std::vector<int>& roots) {
    add_heading_row();
    filtered_ = filter_layers(profile_, options_, roots);
    for (Node& node : make_nodes(profile_, roots, options_.fold, options_.sort, filtered_.shown)) {
      add_root(std::move(node));
    }
    const bool is_whole = options_.start.empty() && filtered_.sentence.empty();
    if (is_whole && !profile_.run.summary) add_outside_rows();
  }

  const Layer& first_layer(const Node& node) const { return profile_.layers[node.layers.front()]; }

  std::size_t width() const {
    return options_.width <= 0 ? 0 : std::max(kNarrowest, static_cast<std::size_t>(options_.width));
  }

  std::string table_text() const {
    if (table_.rows.size() == 1) return "";  // nothing below the heading
    const auto render_as = options_.style == TreeStyle::kBrackets ? render_brackets : render;
    return render_as(table_, width(), options_.color, glyphs_.ellipsis) + '\n';
  }

  std::string table_html() const {
    if (options_.style == TreeStyle::kColumns) return render_html(table_);
    return fmt::format(
        "<pre>{}</pre>\n",
        paint_html(render_brackets(table_, 0, false, glyphs_.ellipsis), Tone::kPlain));
  }

  void add_heading_row() {
    TableRow row;
    row.name = {"layer", Tone::kDim};
    for (const Column column : columns_) {
      table_.columns.push_back(table_column(column));
      row.cells.push_back({table_.columns.back().title, Tone::kDim});
    }
    row.note_column = columns_.size();
    table_.rows.push_back(std::move(row));
  }

  void add_root(Node node) {
    // The start node is named by where it is, a root by its class (as its layer's name already is).
    if (!options_.start.empty()) node.first_name = node.last_name = options_.start;
    add_layer_row(node, "", Tone::kBold);
    add_children(node, "", 0);
  }

  void add_children(const Node& node, const std::string& indent, int depth) {
    if (node.children.empty()) return;
    if (options_.depth >= 0 && depth >= options_.depth) {
      add_cut_row(node.below, fmt::format("{}{}", indent, glyphs_.last));
      return;
    }
    for (const Node& child : node.children) {
      const bool last = &child == &node.children.back();
      add_layer_row(child, fmt::format("{}{}", indent, last ? glyphs_.last : glyphs_.branch),
                    Tone::kPlain);
      add_children(child, fmt::format("{}{}", indent, last ? "    " : glyphs_.pipe), depth + 1);
    }
  }

  void add_cut_row(std::size_t below, std::string branches) {
    TableRow row;
    row.branches = std::move(branches);
    row.name = {fmt::format("{} {} {} below", glyphs_.ellipsis, format_count(std::uint64_t{below}),
                            below == 1 ? "layer" : "layers"),
                Tone::kDim};
    row.cells.resize(columns_.size());
    table_.rows.push_back(std::move(row));
  }

  void add_layer_row(const Node& node, std::string branches, Tone tone) {
    const Layer& layer = first_layer(node);
    if (!has_figures(layer)) tone = Tone::kDim;
    TableRow row;
    row.branches = std::move(branches);
    row.name = {texts_.name(node), tone};
    for (const Column column : columns_) {
      row.cells.push_back(is_text(column) ? Cell{texts_.cell(column, node),
                                                 tone == Tone::kDim ? tone : Tone::kPlain}
                                          : cell(column, node.figures));
    }
    // A root is all of the step; to colour it would say nothing.
    if (tone == Tone::kBold) {
      for (Cell& cell : row.cells) cell.tone = Tone::kPlain;
    }
    row.note = {texts_.note(node), Tone::kDim};
    row.note_column = has_figures(layer) ? columns_.size() : first_figure_column();
    table_.rows.push_back(std::move(row));
  }

  Cell cell(Column column, const Figures& figures) const {
    if (options_.style == TreeStyle::kBrackets) return {bracket_text(column, figures, style_)};
    return figure_cell(column, figures, style_);
  }

  // A summary tells of layers that were not called, too.
  bool has_figures(const Layer& layer) const { return layer.ran || profile_.run.summary; }

  // Where the text of a row without figures starts: beside the type, wherever that is.
  std::size_t first_figure_column() const {
    const auto type = std::find(columns_.begin(), columns_.end(), Column::kType);
    return type == columns_.end() ? 0 : static_cast<std::size_t>(type - columns_.begin()) + 1;
  }

  void add_outside_rows() {
    for (std::size_t i = 0; i < kPhaseCount; ++i) {
      const PhaseStats& phase = profile_.outside[i];
      if (phase.empty()) continue;
      TableRow row;
      row.name = {fmt::format("({})", phase_name(static_cast<Phase>(i)))};
      row.cells.resize(columns_.size());
      row.note_column = first_time_column();
      if (row.note_column < columns_.size()) {
        row.note = {outside_text(phase)};
      } else if (!add_outside_amounts(static_cast<Phase>(i), row)) {
        continue;
      }
      table_.rows.push_back(std::move(row));
    }
  }

  // A text with times belongs under times: where there is no such column, to none.
  std::size_t first_time_column() const {
    const auto found = std::ranges::find_if(columns_, [this](Column column) {
      return is_time(column) && (style_.has_gpu || !is_of_gpu(column));
    });
    return static_cast<std::size_t>(found - columns_.begin());
  }

  // What ran outside of layers may be counted all the same. False where there is nothing to show.
  bool add_outside_amounts(Phase phase, TableRow& row) const {
    Layer outside;
    outside.phases[static_cast<std::size_t>(phase)] =
        profile_.outside[static_cast<std::size_t>(phase)];
    const Figures figures = figures_of(outside);
    const std::string nothing(glyphs_.dash);
    bool has_any = false;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (is_text(columns_[i]) || !is_counted(columns_[i])) continue;
      row.cells[i] = cell(columns_[i], figures);
      has_any |= !row.cells[i].text.empty() && row.cells[i].text != nothing;
    }
    return has_any;
  }

  std::string outside_text(const PhaseStats& phase) const {
    const std::string count = format_count(phase.activities.mean);
    const std::string activities =
        fmt::format("{} {}", count, count == "1" ? "activity" : "activities");
    if (!profile_.run.device.empty()) {
      std::string host = fmt::format("{} on the host", format_time(phase.host_ns.mean, glyphs_));
      if (phase.activities.mean == 0) return host;
      return fmt::format("{}  {}, {}", time_and_share(phase.busy_ns.mean, style_), activities,
                         host);
    }
    std::string time = time_and_share(phase.host_ns.mean, style_);
    if (!style_.ops || phase.activities.mean == 0) return time;
    return fmt::format("{}  {}", time, activities);
  }

  std::string sentences(const std::vector<Sentence>& all) const {
    return text_of(all, width(), options_.color);
  }

  static std::string html_sentences(const std::vector<Sentence>& all) {
    std::string out;
    for (const Sentence& sentence : all) {
      out +=
          fmt::format("<p style=\"margin:0\">{}</p>\n", paint_html(sentence.text, sentence.tone));
    }
    return out;
  }

  const Profile& profile_;
  const TreeOptions& options_;
  const Glyphs& glyphs_;
  const CellStyle style_;
  const std::vector<Column> columns_;
  const RowTexts texts_;
  Filtered filtered_;
  Table table_;
};

}  // namespace
}  // namespace report

std::string tree(const Profile& profile, const TreeOptions& options) {
  const std::vector<int> roots = report::roots_of(profile, options.start);
  if (roots.empty() && !options.start.empty())
    return report::unknown_layer(profile, options.start, options.ascii);
  return report::TreeWriter(profile, options).write(roots);
}

std::string tree_html(const Profile& profile, const TreeOptions& options) {
  const std::vector<int> roots = report::roots_of(profile, options.start);
  if (roots.empty() && !options.start.empty()) {
    return report::paint_html(report::unknown_layer(profile, options.start, options.ascii),
                              report::Tone::kPlain);
  }
  return report::TreeWriter(profile, options).write_html(roots);
}

}  // namespace layertrace
