// `layertrace summary` and `layertrace card`: what a Python model is and computes. A model is built
// by Python, so this becomes the Python that has layertrace.
#pragma once

#include <string>
#include <vector>

namespace layertrace::tools {

// Runs the command of this name there. Does not return where that Python could be started; else the
// exit code.
int run_python_command(const std::string& command, const std::vector<std::string>& arguments);

}  // namespace layertrace::tools
