// `layertrace graph`: the layers as a picture, by Graphviz.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>
#include <layertrace/result.h>

namespace layertrace::tools {

struct GraphArguments {
  std::string file;
  std::string output = "-";          // by its ending: .dot, .gv, .svg, .pdf, .png
  std::vector<std::string> columns;  // by name
  GraphOptions options;
};

// Whether its ending says what it is to be.
Result<void> check_graph_name(std::string_view output);

// An unknown start node or ending is an error that says what there is; so is a picture where there
// is no `dot` on PATH to draw it.
Result<void> write_graph(const GraphArguments& arguments);

void add_graph(CLI::App& app, int& exit_code);

}  // namespace layertrace::tools
