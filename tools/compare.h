// `layertrace compare`: what changed from one saved run to others.
#pragma once

#include <CLI/CLI.hpp>

namespace layertrace::tools {

void add_compare(CLI::App& app, int& exit_code);

}  // namespace layertrace::tools
