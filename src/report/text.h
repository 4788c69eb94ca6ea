// Text for terminals. Names in a Profile come from users' programs and from files: they may hold
// line breaks, escape sequences, wide characters or bytes that are no UTF-8 at all. Whatever a
// report prints goes through clean() first, and is measured in terminal cells, not in bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace layertrace::report {

// A C++ function's name without its result, its arguments and what its templates are made of:
// "at::native::reduce_kernel<…>". Other names stay as they are.
std::string without_arguments(std::string_view name, std::string_view ellipsis);

// The few characters in which a UTF-8 report and an ASCII one differ.
struct Glyphs {
  bool ascii;
  std::string_view branch;    // to a child that has siblings after it
  std::string_view last;      // to the last child
  std::string_view pipe;      // past a child that has siblings after it
  std::string_view ellipsis;  // something was left out here
  std::string_view times;     // "12 × Block"
  std::string_view dash;      // "0–11"; alone: nothing to show
  std::string_view dot;       // between the parts of the title
  std::string_view micro;
};
const Glyphs& glyphs_for(bool ascii);

// The text with control and invisible characters written as escapes (\n, \x1b, \u202e), so that a
// name can neither break a line nor steer the terminal. Bytes that are not UTF-8 become U+FFFD; in
// ASCII "?", and other characters \u….
std::string clean(std::string_view text, bool ascii);

// The text with U+FFFD for each byte that is not UTF-8, and nothing else changed.
std::string replace_invalid_utf8(std::string_view text);

// Terminal cells of a cleaned text: CJK and emoji take two, combining marks none.
std::size_t display_width(std::string_view text);

// At most `width` cells of a cleaned text; what is left out in its middle, at its end or at its
// start is marked.
std::string shorten_middle(std::string_view text, std::size_t width, std::string_view ellipsis);
std::string shorten_end(std::string_view text, std::size_t width, std::string_view ellipsis);
std::string shorten_start(std::string_view text, std::size_t width, std::string_view ellipsis);

// Breaks a sentence at spaces into lines of at most `width` cells (0: one line), later ones
// indented by two. A word longer than a line is broken.
std::vector<std::string> wrap_words(std::string_view text, std::size_t width);

}  // namespace layertrace::report
