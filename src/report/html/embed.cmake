# cmake -DSOURCE_DIR=… -DOUTPUT=… -P embed.cmake
#
# Writes page.html, page.css and script/*.js as a C++ source, with the hashes that a Content-Security-Policy wants.

# "sha256-" and the digest of `text` in base64.
function(policy_hash text result)
  string(SHA256 hex "${text}")
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(out "sha256-")
  string(APPEND hex "00")  # 32 bytes are 10 groups of three and one of two
  foreach(group RANGE 10)
    math(EXPR at "${group} * 6")
    string(SUBSTRING "${hex}" ${at} 6 bytes)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${bytes} >> ${shift}) & 63")
      string(SUBSTRING "${digits}" ${digit} 1 character)
      string(APPEND out "${character}")
    endforeach()
  endforeach()
  string(REGEX REPLACE ".$" "=" out "${out}")
  set(${result} "${out}" PARENT_SCOPE)
endfunction()

file(READ ${SOURCE_DIR}/page.html page)
file(READ ${SOURCE_DIR}/page.css css)
# Each file sees the names of those before it, and the page none of them.
set(js "(() => {\n'use strict';\n")
foreach(name format layers page tip icicle rows table plot steps roofline memory ledger perfetto main)
  file(READ ${SOURCE_DIR}/script/${name}.js script)
  string(APPEND js "${script}")
endforeach()
string(APPEND js "})();\n")
policy_hash("${css}" css_hash)
policy_hash("${js}" js_hash)
set(text "// Made by embed.cmake from the files beside it.\n#include \"report/html_page.h\"\n\n\
namespace layertrace::report::html {\n\n")
foreach(part page:kPage css:kCss js:kJs css_hash:kCssHash js_hash:kJsHash)
  string(REPLACE ":" ";" part ${part})
  list(GET part 0 variable)
  list(GET part 1 name)
  string(APPEND text "const std::string_view ${name} = R\"_page(${${variable}})_page\";\n\n")
endforeach()
string(APPEND text "}  // namespace layertrace::report::html\n")
file(WRITE ${OUTPUT} "${text}")
