// report_html(): the page is a template of the repository (html/), with its style sheet, its script
// and the run's data put in. The policy in its head forbids all but these two by their hashes, and
// any request.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <layertrace/report.h>

#include "report/html_data.h"
#include "report/html_page.h"
#include "report/numbers.h"
#include "report/text.h"

namespace layertrace {
namespace report {
namespace {

// Within a script element "<" could end it or begin a comment; in JSON it can be written otherwise.
std::string for_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) {
      const bool is_there = i + j <= bytes.size();  // n bytes take n + 1 digits
      out += is_there ? kDigits[group >> (18 - 6 * j) & 63U] : '=';
    }
  }
  return out;
}

std::string_view part_named(std::string_view name, std::string_view data, std::string_view trace) {
  if (name == "css") return html::kCss;
  if (name == "js") return html::kJs;
  if (name == "css_hash") return html::kCssHash;
  if (name == "js_hash") return html::kJsHash;
  if (name == "data") return data;
  if (name == "trace") return trace;
  return {};
}

// Replaces {{name}} in the page, in one pass: what is put in is not looked at again.
std::string fill_page(std::string_view page, std::string_view data, std::string_view trace) {
  std::string out;
  out.reserve(page.size() + html::kCss.size() + html::kJs.size() + data.size() + trace.size());
  for (;;) {
    const std::size_t open = page.find("{{");
    const std::size_t close = open == std::string_view::npos ? open : page.find("}}", open);
    if (close == std::string_view::npos) return out.append(page);
    out.append(page.substr(0, open));
    out.append(part_named(page.substr(open + 2, close - open - 2), data, trace));
    page.remove_prefix(close + 2);
  }
}

}  // namespace
}  // namespace report

Result<std::string> report_html(const Profile& profile, const ReportOptions& options) {
  if (options.trace.size() > kLargestEmbeddedTrace) {
    return Error{
        "cannot keep the trace in the page",
        fmt::format("it has {}, and at most {} fit", report::format_bytes(options.trace.size()),
                    report::format_bytes(kLargestEmbeddedTrace)),
        "Write the page without it; `layertrace view` opens the trace"};
  }
  const std::string data = report::for_script(report::dump(report::page_data(profile, options)));
  return report::fill_page(report::html::kPage, data, report::base64(options.trace));
}

}  // namespace layertrace
