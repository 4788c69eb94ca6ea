// Options that are refused before anything is done: what makes no sense is the command line's
// fault, exit code 2, and not that of a file.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <utility>

namespace layertrace::tools {

// For an option that a function of this form reads: Result<T> parse(std::string_view).
template <typename Parse>
CLI::Validator read_by(Parse parse) {
  return {[parse = std::move(parse)](const std::string& text) {
            const auto parsed = parse(text);
            return parsed ? std::string() : parsed.error().message();
          },
          ""};
}

}  // namespace layertrace::tools
