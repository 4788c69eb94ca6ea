// for_terminal(): what the stream that a report goes to can show.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include <layertrace/report.h>

namespace layertrace {
namespace {

constexpr int kUsualWidth = 80;  // of a terminal that does not say

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// A COLUMNS in the environment was put there on purpose (shells do not export their own), so it
// goes first.
int terminal_width(int file_descriptor) {
  const std::string_view columns = environment("COLUMNS");
  int width = 0;
  const auto [end, error] = std::from_chars(columns.data(), columns.data() + columns.size(), width);
  if (error == std::errc() && end == columns.data() + columns.size() && width > 0) return width;
  winsize size{};
  if (ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kUsualWidth;
}

// Read from the environment, not from setlocale(): most C++ programs never call it and so run in
// "C" whatever the terminal can show.
bool locale_is_utf8() {
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    locale = environment(name);
    if (!locale.empty()) break;
  }
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

}  // namespace

TreeOptions for_terminal(int file_descriptor, TreeOptions options) {
  const bool terminal = isatty(file_descriptor) == 1;
  const bool wants_color = environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  if (options.width == 0 && terminal) options.width = terminal_width(file_descriptor);
  options.color = options.color || (terminal && wants_color);
  options.ascii = options.ascii || !locale_is_utf8();
  return options;
}

}  // namespace layertrace
