// What a Python has of torch and of layertrace. The command links neither, so a Python is asked: in
// a process of its own, with a time limit, since importing torch runs a lot of others' code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu.h"

namespace layertrace::tools {

struct PythonEnvironment {
  std::string executable;  // as it was asked for, or as it calls itself; "" where there is none
  std::string error;       // why it could not be asked to the end, "" if it could
  std::string version;     // of Python
  std::string torch_folder;
  std::string torch_version;
  std::string torch_cuda;  // the CUDA that this torch was built for, "" for a CPU build
  std::string torch_error;
  int torch_devices = 0;  // that this torch sees
  std::string package_folder;
  std::string package_version;
  std::string package_error;
};

// The Pythons to ask, in order. One that was named (`chosen`, or LAYERTRACE_PYTHON) is the only
// one.
std::vector<std::string> pythons_to_ask(const std::string& chosen, const GetVariable& environment);

// The answer in what the question printed: its last whole line of JSON.
std::optional<PythonEnvironment> parse_answer(std::string_view printed);

// The first that has torch; else the first that answers.
PythonEnvironment ask_python(const std::vector<std::string>& pythons);

}  // namespace layertrace::tools
