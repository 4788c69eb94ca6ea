// `layertrace import`: a trace of torch.profiler, attributed.
#pragma once

#include <CLI/CLI.hpp>

namespace layertrace::tools {

void add_import(CLI::App& app, int& exit_code);

}  // namespace layertrace::tools
