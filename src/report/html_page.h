// The files in html/, as CMake puts them into the library (html/embed.cmake), with the hashes that
// the page's policy names them by: "sha256-" and the digest in base64.
#pragma once

#include <string_view>

namespace layertrace::report::html {

extern const std::string_view kPage;
extern const std::string_view kCss;
extern const std::string_view kJs;
extern const std::string_view kCssHash;
extern const std::string_view kJsHash;

}  // namespace layertrace::report::html
