// `layertrace summary`: what a Python model is and computes. A model is built by Python, so this
// becomes the Python that has layertrace.
#pragma once

#include <string>
#include <vector>

namespace layertrace::tools {

// Does not return where that Python could be started; else the exit code.
int summarise(const std::vector<std::string>& arguments);

}  // namespace layertrace::tools
