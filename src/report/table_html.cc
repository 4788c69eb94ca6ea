#include <fmt/format.h>

#include <array>

#include "report/table.h"

namespace layertrace::report {
namespace {

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string html_row(const Table& table, const TableRow& row, std::string_view tag) {
  constexpr std::string_view kPlain = "text-align:left;white-space:pre;padding:0 1em 0 0";
  constexpr std::string_view kFigure = "text-align:right;white-space:pre;padding:0 1em 0 0";
  std::string out =
      fmt::format("<tr><{} style=\"{}\">{}{}</{}>", tag, kPlain, escape_html(row.branches),
                  paint_html(row.name.text, row.name.tone), tag);
  const bool has_note = !row.note.text.empty();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (has_note && i >= row.note_column) break;
    out += fmt::format(R"(<{} style="{}">{}</{}>)", tag, table.columns[i].left ? kPlain : kFigure,
                       paint_html(row.cells[i].text, row.cells[i].tone), tag);
  }
  if (has_note) {
    out += fmt::format(R"(<{} style="{}" colspan="{}">{}</{}>)", tag, kPlain,
                       table.columns.size() + 1 - row.note_column,
                       paint_html(row.note.text, row.note.tone), tag);
  }
  return out + "</tr>\n";
}

}  // namespace

std::string paint_html(std::string_view text, Tone tone) {
  // In Tone's order: plain, dim, bold, warm, hot.
  constexpr std::array<std::string_view, 5> kStyles = {"", "opacity:0.6", "font-weight:bold",
                                                       "color:#b58900", "color:#dc322f"};
  const std::string_view style = kStyles[static_cast<std::size_t>(tone)];
  if (text.empty() || style.empty()) return escape_html(text);
  return fmt::format(R"(<span style="{}">{}</span>)", style, escape_html(text));
}

std::string render_html(const Table& table) {
  if (table.rows.size() <= 1) return "";  // nothing below the heading
  std::string out =
      "<table style=\"font-family:monospace;border-collapse:collapse;margin:0.5em 0\">\n<thead>\n" +
      html_row(table, table.rows.front(), "th") + "</thead>\n<tbody>\n";
  for (std::size_t i = 1; i < table.rows.size(); ++i) out += html_row(table, table.rows[i], "td");
  return out + "</tbody>\n</table>\n";
}

}  // namespace layertrace::report
