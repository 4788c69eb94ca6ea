// A table of GitHub's Markdown. Whatever would be markup in a name is escaped.
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>

#include "report/tables/readable.h"

namespace layertrace {
namespace tables {
namespace {

bool is_word(std::string_view text, std::size_t at) {
  return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0);
}

// An underline inside a word is none of Markdown's, nor is a bracket before anything but these.
bool is_markup(std::string_view text, std::size_t at) {
  constexpr std::string_view kMarkup = "\\`*<|~&$";
  const char c = text[at];
  if (c == '_') return at == 0 || !is_word(text, at - 1) || !is_word(text, at + 1);
  if (c == ']') return at + 1 < text.size() && (text[at + 1] == '(' || text[at + 1] == '[');
  return kMarkup.find(c) != std::string_view::npos;
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_markup(text, i)) out += '\\';
    out += text[i];
  }
  return out;
}

}  // namespace
}  // namespace tables

std::string to_markdown(const Table& table) {
  const std::vector<tables::ReadableColumn> columns = tables::readable(table);
  std::string out;
  for (const std::string& line : tables::note_lines(table))
    out += "*" + tables::escape_markdown(line) + "*\n\n";
  out += '|';
  for (const auto& column : columns) out += " " + tables::escape_markdown(column.heading) + " |";
  out += "\n|";
  for (const auto& column : columns) out += column.left ? " --- |" : " ---: |";
  out += '\n';
  for (std::size_t row = 0; row < table.rows(); ++row) {
    out += '|';
    for (const auto& column : columns)
      out += " " + tables::escape_markdown(column.cells[row]) + " |";
    out += '\n';
  }
  return out;
}

}  // namespace layertrace
