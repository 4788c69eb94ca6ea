#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace layertrace::report {
namespace {

struct CodePoint {
  char32_t value;
  std::size_t size;  // bytes
  bool valid;
};

struct Range {
  char32_t first;
  char32_t last;
};

// Unicode's Cc, Cf and line separators: nothing to see, much to confuse (bidirectional overrides
// turn a line around).
constexpr Range kInvisible[] = {{0x0, 0x1f},      {0x7f, 0x9f},      {0xad, 0xad},
                                {0x61c, 0x61c},   {0x180e, 0x180e},  {0x200b, 0x200f},
                                {0x2028, 0x202e}, {0x2060, 0x206f},  {0xfeff, 0xfeff},
                                {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

constexpr Range kCombining[] = {
    {0x300, 0x36f},   {0x483, 0x489},    {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
    {0x93c, 0x93c},   {0x94d, 0x94d},    {0xe31, 0xe31},   {0xe34, 0xe3a},   {0xe47, 0xe4e},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},  {0x20d0, 0x20f0}, {0x3099, 0x309a}, {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef}};

// East Asian Wide and Fullwidth blocks, and the emoji planes.
constexpr Range kWide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd}};

template <std::size_t kCount>
bool in(const Range (&ranges)[kCount], char32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](const Range& r) { return r.first <= c && c <= r.last; });
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

// The code point at the start of a text that is not empty. An invalid sequence is one invalid byte.
CodePoint decode(std::string_view text) {
  constexpr CodePoint kInvalid{0xfffd, 1, false};
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // below it a sequence is overlong
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t size = sequence_length(lead);
  if (size == 0 || size > text.size()) return kInvalid;
  char32_t value = size == 1 ? lead : lead & (0x7f >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (!is_continuation(text[i])) return kInvalid;
    value = value << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kSmallest[size] || value > 0x10ffff || surrogate) return kInvalid;
  return {value, size, true};
}

std::string escape(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  const auto value = static_cast<std::uint32_t>(c);
  if (value < 0x80) return fmt::format("\\x{:02x}", value);
  return value < 0x10000 ? fmt::format("\\u{:04x}", value) : fmt::format("\\U{:08x}", value);
}

std::size_t cell_count(char32_t c) {
  if (c < 0x300) return 1;  // nearly all there is
  if (in(kCombining, c)) return 0;
  return in(kWide, c) ? 2 : 1;
}

// The longest start of the text that takes no more than `width` cells.
std::string_view take_start(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t used = 0; end < text.size();) {
    const CodePoint next = decode(text.substr(end));
    used += cell_count(next.value);
    if (used > width) break;
    end += next.size;
  }
  return text.substr(0, end);
}

std::string_view take_end(std::string_view text, std::size_t width) {
  std::size_t excess = display_width(text);
  std::size_t start = 0;
  while (excess > width) {
    const CodePoint next = decode(text.substr(start));
    excess -= cell_count(next.value);
    start += next.size;
  }
  // A mark that belongs to a character left out would sit on the ellipsis.
  while (start < text.size() && cell_count(decode(text.substr(start)).value) == 0) {
    start += decode(text.substr(start)).size;
  }
  return text.substr(start);
}

// Cells left beside the ellipsis, or none where it does not fit itself.
bool room_beside(std::string_view ellipsis, std::size_t width, std::size_t& room) {
  const std::size_t taken = display_width(ellipsis);
  room = width - std::min(width, taken);
  return taken < width;
}

constexpr std::string_view kIndent = "  ";  // of a sentence's second and later lines
constexpr std::size_t kNarrowestWrap = 5;   // the indent, a wide character and one cell to spare

class WordWrapper {
 public:
  explicit WordWrapper(std::size_t width) : width_(width) {}

  void add(std::string_view word) {
    if (!fresh_ && used_ + 1 + display_width(word) > width_) break_line();
    if (!fresh_) append(" ");
    while (used_ + display_width(word) > width_) {  // longer than a whole line
      const std::string_view part = take_start(word, width_ - used_);
      append(part);
      word.remove_prefix(part.size());
      break_line();
    }
    append(word);
    fresh_ = false;
  }

  std::vector<std::string> take() {
    if (!fresh_) lines_.push_back(std::move(line_));
    return std::move(lines_);
  }

 private:
  void append(std::string_view text) {
    line_ += text;
    used_ += display_width(text);
  }

  void break_line() {
    lines_.push_back(std::move(line_));
    line_ = kIndent;
    used_ = kIndent.size();
    fresh_ = true;
  }

  const std::size_t width_;
  std::vector<std::string> lines_;
  std::string line_;
  std::size_t used_ = 0;  // cells of `line_`
  bool fresh_ = true;     // no word in it yet
};

}  // namespace

const Glyphs& glyphs_for(bool ascii) {
  static constexpr Glyphs kUnicode{false, "├── ", "└── ", "│   ", "…", "×", "–", "·", "µ"};
  static constexpr Glyphs kAscii{true, "|-- ", "`-- ", "|   ", "...", "x", "-", "-", "u"};
  return ascii ? kAscii : kUnicode;
}

std::string clean(std::string_view text, bool ascii) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint next = decode(text);
    if (!next.valid) {
      out += ascii ? "?" : "\ufffd";
    } else if (in(kInvisible, next.value) || (ascii && next.value > 0x7e)) {
      out += escape(next.value);
    } else {
      out += text.substr(0, next.size);
    }
    text.remove_prefix(next.size);
  }
  return out;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint next = decode(text);
    out += next.valid ? text.substr(0, next.size) : std::string_view("\ufffd");
    text.remove_prefix(next.size);
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const CodePoint next = decode(text);
    width += cell_count(next.value);
    text.remove_prefix(next.size);
  }
  return width;
}

std::string shorten_middle(std::string_view text, std::size_t width, std::string_view ellipsis) {
  if (display_width(text) <= width) return std::string(text);
  std::size_t room = 0;
  if (!room_beside(ellipsis, width, room)) return std::string(take_start(text, width));
  const std::string_view start = take_start(text, (room + 1) / 2);
  return fmt::format("{}{}{}", start, ellipsis, take_end(text, room / 2));
}

std::string shorten_end(std::string_view text, std::size_t width, std::string_view ellipsis) {
  if (display_width(text) <= width) return std::string(text);
  std::size_t room = 0;
  if (!room_beside(ellipsis, width, room)) return std::string(take_start(text, width));
  return fmt::format("{}{}", take_start(text, room), ellipsis);
}

std::string shorten_start(std::string_view text, std::size_t width, std::string_view ellipsis) {
  if (display_width(text) <= width) return std::string(text);
  std::size_t room = 0;
  if (!room_beside(ellipsis, width, room)) return std::string(take_end(text, width));
  return fmt::format("{}{}", ellipsis, take_end(text, room));
}

std::vector<std::string> wrap_words(std::string_view text, std::size_t width) {
  if (width < kNarrowestWrap) return {std::string(text)};
  WordWrapper wrapper(width);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    wrapper.add(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return wrapper.take();
}

std::string without_arguments(std::string_view name, std::string_view ellipsis) {
  constexpr std::string_view kVoid = "void ";
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  if (name.find_first_of("(<") == std::string_view::npos) return std::string(name);
  if (name.starts_with(kVoid)) name.remove_prefix(kVoid.size());
  std::string text;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '(' && name.substr(i).starts_with(kAnonymous)) {
      if (depth == 0) text += kAnonymous;
      i += kAnonymous.size() - 1;
    } else if (c == '(' && depth == 0) {
      break;
    } else if (c == '<') {
      if (depth++ == 0) text.append("<").append(ellipsis).append(">");
    } else if (c == '>') {
      depth = std::max(0, depth - 1);
    } else if (depth == 0) {
      text += c;
    }
  }
  return text.empty() ? std::string(name) : text;
}

}  // namespace layertrace::report
