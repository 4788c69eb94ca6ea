// `layertrace report`: a run as one page that opens offline.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include <layertrace/result.h>

namespace layertrace::tools {

struct ReportArguments {
  std::string file;
  std::string output;  // "" for FILE with .html as its ending
  std::string title;
  bool embed_trace = false;
};

// Where the page was written to.
Result<std::string> write_report(const ReportArguments& arguments);

void add_report(CLI::App& app, int& exit_code);

}  // namespace layertrace::tools
