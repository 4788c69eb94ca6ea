// Rows of a name and aligned columns that never wrap. Where the width is limited, columns go first,
// the least important one before the others; then names are shortened in their middle.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace layertrace::report {

enum class Tone { kPlain, kDim, kBold, kWarm, kHot };

// The text in its colour; as it is where colour is off, the text is empty or the tone plain.
std::string paint(std::string_view text, Tone tone, bool color);

struct TableColumn {
  std::string title;
  bool left = false;       // left-aligned text, which may be shortened; else right-aligned figures,
                           // which may not
  int importance = 0;      // the lowest is dropped first
  std::string label = {};  // in brackets
  bool whole = false;      // of text: never shortened
};

struct Cell {
  std::string text;  // cleaned
  Tone tone = Tone::kPlain;
};

struct TableRow {
  std::string branches;  // box-drawing in front of the name
  Cell name;
  std::vector<Cell> cells;  // one per column
  Cell note;  // free text in place of the cells from `note_column` on; cut where the line ends
  std::size_t note_column = 0;
};

struct Table {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;  // the first one is the heading
};

// Lines, each ended by a newline and without spaces before it. `width` 0: as wide as it takes.
std::string render(const Table& table, std::size_t width, bool color, std::string_view ellipsis);

// The same without a heading, each row's cells behind its name: "fc [Parameters=288, MACs=256]".
std::string render_brackets(const Table& table, std::size_t width, bool color,
                            std::string_view ellipsis);

// As columns for a page: text with what HTML means otherwise escaped, and a table in which colours
// suit a light and a dark page.
std::string paint_html(std::string_view text, Tone tone);
std::string render_html(const Table& table);

}  // namespace layertrace::report
