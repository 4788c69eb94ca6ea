#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "report/text.h"

namespace layertrace::report {
namespace {

constexpr std::size_t kGap = 2;            // between columns
constexpr std::size_t kShortestName = 12;  // below it even the last column gives way
constexpr std::size_t kShortestText = 8;   // of a left-aligned column
constexpr std::size_t kShortestNote = 6;   // a shorter stump says less than the ellipsis alone

// Which columns are shown, and how wide everything is.
struct Layout {
  std::vector<std::size_t> shown;   // indices of columns
  std::vector<std::size_t> widths;  // of all columns
  std::size_t name_width = 0;
};

std::size_t columns_width(const Layout& layout) {
  return std::accumulate(
      layout.shown.begin(), layout.shown.end(), std::size_t{0},
      [&](std::size_t sum, std::size_t column) { return sum + kGap + layout.widths[column]; });
}

Layout natural_layout(const Table& table) {
  Layout layout;
  layout.shown.resize(table.columns.size());
  std::iota(layout.shown.begin(), layout.shown.end(), std::size_t{0});
  layout.widths.resize(table.columns.size());
  for (const TableRow& row : table.rows) {
    layout.name_width =
        std::max(layout.name_width, display_width(row.branches) + display_width(row.name.text));
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      layout.widths[i] = std::max(layout.widths[i], display_width(row.cells[i].text));
    }
  }
  return layout;
}

bool has_trailing_note(const Table& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const TableRow& row) {
    return !row.note.text.empty() && row.note_column >= table.columns.size();
  });
}

void drop_least_important(Layout& layout, const Table& table) {
  layout.shown.erase(
      std::min_element(layout.shown.begin(), layout.shown.end(), [&](std::size_t a, std::size_t b) {
        return table.columns[a].importance < table.columns[b].importance;
      }));
}

// One absurdly long name must not cost every column: names count with at most half of the line
// here, types with a quarter, and are shortened to what is left in the end. `mark` cells are kept
// free at the end of a line where something is left out, to say so.
void fit(Layout& layout, const Table& table, std::size_t width, std::size_t mark) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::size_t most = std::max(kShortestText, width / 4);
    if (table.columns[i].left && !table.columns[i].whole)
      layout.widths[i] = std::min(layout.widths[i], most);
  }
  std::size_t room = has_trailing_note(table) ? width - mark : width;
  while (!layout.shown.empty()) {
    const std::size_t most = layout.shown.size() > 1 ? width / 2 : kShortestName;
    if (std::min(layout.name_width, most) + columns_width(layout) <= room) break;
    drop_least_important(layout, table);
    room = width - mark;
  }
  layout.name_width = std::min(layout.name_width, room - columns_width(layout));
}

// Builds one line. Spaces are held back until something follows them.
class LineWriter {
 public:
  explicit LineWriter(bool color) : color_(color) {}

  void skip_to(std::size_t position) { target_ = position; }

  void write(std::string_view text, Tone tone) {
    if (text.empty()) return;
    if (position_ < target_) line_.append(target_ - position_, ' ');
    position_ = std::max(position_, target_) + display_width(text);
    target_ = position_;
    line_ += paint(text, tone, color_);
  }

  std::size_t position() const { return target_; }
  std::string take() { return std::move(line_) + '\n'; }

 private:
  const bool color_;
  std::string line_;
  std::size_t position_ = 0;  // cells written
  std::size_t target_ = 0;    // where the next text goes
};

// Keeps some of the name even where the tree is deeper than the line is long: then the branches
// lose their start.
void write_name(LineWriter& line, const TableRow& row, std::size_t room,
                std::string_view ellipsis) {
  const std::size_t branches = display_width(row.branches);
  const std::size_t least = std::min({display_width(row.name.text), kShortestName / 2, room});
  const std::size_t branch_room = std::min(branches, room - least);
  line.write(shorten_start(row.branches, branch_room, ellipsis), Tone::kDim);
  line.write(shorten_middle(row.name.text, room - branch_room, ellipsis), row.name.tone);
}

void write_cell(LineWriter& line, const Cell& cell, bool left, std::size_t width,
                std::string_view ellipsis) {
  const std::size_t start = line.position();
  const std::string text = left ? shorten_middle(cell.text, width, ellipsis) : cell.text;
  if (!left) line.skip_to(start + width - display_width(text));
  line.write(text, cell.tone);
  line.skip_to(start + width);
}

void write_note(LineWriter& line, const Cell& note, std::size_t width, std::string_view ellipsis) {
  if (width == 0) return line.write(note.text, note.tone);
  const std::size_t room = width - std::min(width, line.position());
  const bool fits = room >= std::min(kShortestNote, display_width(note.text));
  line.write(fits ? shorten_end(note.text, room, ellipsis) : shorten_end(ellipsis, room, ""),
             note.tone);
}

}  // namespace

std::string paint(std::string_view text, Tone tone, bool color) {
  if (!color || text.empty() || tone == Tone::kPlain) return std::string(text);
  constexpr int kCodes[] = {0, 2, 1, 33, 31};  // in Tone's order: plain, dim, bold, yellow, red
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<int>(tone)], text);
}

std::string render(const Table& table, std::size_t width, bool color, std::string_view ellipsis) {
  Layout layout = natural_layout(table);
  if (width > 0) fit(layout, table, width, kGap + display_width(ellipsis));
  const bool dropped = layout.shown.size() < table.columns.size();
  std::string out;
  for (const TableRow& row : table.rows) {
    LineWriter line(color);
    write_name(line, row, layout.name_width, ellipsis);
    line.skip_to(layout.name_width);
    for (const std::size_t column : layout.shown) {
      if (!row.note.text.empty() && column >= row.note_column) break;
      line.skip_to(line.position() + kGap);
      write_cell(line, row.cells[column], table.columns[column].left, layout.widths[column],
                 ellipsis);
    }
    line.skip_to(line.position() + kGap);
    const bool more = dropped && &row == &table.rows.front();  // columns, which the heading says
    write_note(line, more ? Cell{std::string(ellipsis), Tone::kDim} : row.note, width, ellipsis);
    out += line.take();
  }
  return out;
}

}  // namespace layertrace::report
