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
#include "report/fold_blocks.h"
#include "report/ledger.h"
#include "report/lookup.h"
#include "report/numbers.h"
#include "report/table.h"
#include "report/text.h"

namespace layertrace {
namespace report {
namespace {

constexpr std::size_t kNarrowest = 20;  // a terminal that claims less is not believed
constexpr double kOutlier = 1.25;       // a block this far above the mean is named

class TreeWriter {
 public:
  TreeWriter(const Profile& profile, const TreeOptions& options)
      : profile_(profile),
        options_(options),
        glyphs_(glyphs_for(options.ascii)),
        style_{glyphs_, share_base_ns(profile), has_activities(profile.run),
               has_events_only(profile)},
        columns_(chosen_columns(options, profile)) {}

  std::string write(const std::vector<int>& roots) {
    fill_table(roots);
    return sentences(heading(profile_, glyphs_)) + '\n' + table_text() +
           sentences(ledger(profile_, glyphs_));
  }

  std::string write_html(const std::vector<int>& roots) {
    fill_table(roots);
    return "<div class=\"layertrace\">\n" + html_sentences(heading(profile_, glyphs_)) +
           render_html(table_) + html_sentences(ledger(profile_, glyphs_)) + "</div>\n";
  }

 private:
  void fill_table(const std::vector<int>& roots) {
    add_heading_row();
    for (Node& node : make_nodes(profile_, roots, options_.fold, options_.sort)) {
      add_root(std::move(node));
    }
    if (options_.start.empty()) add_outside_rows();
  }

  const Layer& first_layer(const Node& node) const { return profile_.layers[node.layers.front()]; }

  std::size_t width() const {
    return options_.width <= 0 ? 0 : std::max(kNarrowest, static_cast<std::size_t>(options_.width));
  }

  std::string table_text() const {
    if (table_.rows.size() == 1) return "";  // nothing below the heading
    return render(table_, width(), options_.color, glyphs_.ellipsis) + '\n';
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
    if (!layer.ran) tone = Tone::kDim;
    TableRow row;
    row.branches = std::move(branches);
    row.name = {name_text(node), tone};
    for (const Column column : columns_) {
      row.cells.push_back(column == Column::kType
                              ? Cell{type_text(node), tone == Tone::kDim ? tone : Tone::kPlain}
                              : figure_cell(column, node.figures, style_));
    }
    // A root is all of the step; to colour it would say nothing.
    if (tone == Tone::kBold) {
      for (Cell& cell : row.cells) cell.tone = Tone::kPlain;
    }
    row.note = {note_text(node), Tone::kDim};
    row.note_column = layer.ran ? columns_.size() : first_figure_column();
    table_.rows.push_back(std::move(row));
  }

  // Where the text of a row without figures starts: beside the type, wherever that is.
  std::size_t first_figure_column() const {
    const auto type = std::find(columns_.begin(), columns_.end(), Column::kType);
    return type == columns_.end() ? 0 : static_cast<std::size_t>(type - columns_.begin()) + 1;
  }

  std::string name_text(const Node& node) const {
    std::string first = clean(node.first_name, options_.ascii);
    if (node.blocks == 1) return first;
    return fmt::format("{}{}{}", first, glyphs_.dash, clean(node.last_name, options_.ascii));
  }

  std::string type_text(const Node& node) const {
    const Layer& layer = first_layer(node);
    const std::string type = clean(layer.type, options_.ascii);
    if (node.blocks > 1) return fmt::format("{} {} {}", node.blocks, glyphs_.times, type);
    const bool named_by_class = layer.path.empty();  // a root, whose row would say its type twice
    return named_by_class ? "" : type;
  }

  std::string note_text(const Node& node) const {
    const Layer& layer = first_layer(node);
    std::vector<std::string> parts;
    if (!layer.shared_with.empty()) {
      parts.push_back(fmt::format("= {}", clean(layer.shared_with, options_.ascii)));
    } else if (!layer.ran) {
      parts.emplace_back("not run");
    }
    if (!layer.registered) parts.emplace_back("(unregistered)");
    if (node.blocks > 1 && layer.ran) parts.push_back(spread_text(node));
    return fmt::format("{}", fmt::join(parts, " "));
  }

  // "each 1.20–1.40 ms", and which block it is that takes far more than the others.
  std::string spread_text(const Node& node) const {
    const auto total_ns = [this](int layer) { return figures_of(profile_.layers[layer]).total_ns; };
    const auto [least, most] =
        std::minmax_element(node.layers.begin(), node.layers.end(),
                            [&](int a, int b) { return total_ns(a) < total_ns(b); });
    std::string text =
        fmt::format("each {}", format_time_range(total_ns(*least), total_ns(*most), glyphs_));
    const double mean_ns = node.figures.total_ns / static_cast<double>(node.layers.size());
    if (mean_ns > 0 && total_ns(*most) >= kOutlier * mean_ns) {
      text += fmt::format(", most in {}", clean(profile_.layers[*most].path, options_.ascii));
    }
    return text;
  }

  void add_outside_rows() {
    for (std::size_t i = 0; i < kPhaseCount; ++i) {
      const PhaseStats& phase = profile_.outside[i];
      if (phase.empty()) continue;
      TableRow row;
      row.name = {fmt::format("({})", phase_name(static_cast<Phase>(i)))};
      row.cells.resize(columns_.size());
      row.note = {outside_text(phase)};
      row.note_column = first_figure_column();
      table_.rows.push_back(std::move(row));
    }
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
  Table table_;
};

// The layers at the top: those without parents, or the start node; empty if there is no such node.
std::vector<int> roots_of(const Profile& profile, const TreeOptions& options) {
  std::vector<int> roots;
  if (options.start.empty()) {
    for (std::size_t i = 0; i < profile.layers.size(); ++i) {
      if (profile.layers[i].parent < 0) roots.push_back(static_cast<int>(i));
    }
  } else if (const Layer* start = profile.find(options.start)) {
    roots.push_back(static_cast<int>(start - profile.layers.data()));
  }
  return roots;
}

}  // namespace
}  // namespace report

std::string tree(const Profile& profile, const TreeOptions& options) {
  const std::vector<int> roots = report::roots_of(profile, options);
  if (roots.empty() && !options.start.empty())
    return report::unknown_layer(profile, options.start, options.ascii);
  return report::TreeWriter(profile, options).write(roots);
}

std::string tree_html(const Profile& profile, const TreeOptions& options) {
  const std::vector<int> roots = report::roots_of(profile, options);
  if (roots.empty() && !options.start.empty()) {
    return report::paint_html(report::unknown_layer(profile, options.start, options.ascii),
                              report::Tone::kPlain);
  }
  return report::TreeWriter(profile, options).write_html(roots);
}

}  // namespace layertrace
