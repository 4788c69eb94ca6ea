// `layertrace simgpu -- PROGRAM`: runs a CUDA program on the simulated device, unchanged.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <layertrace/result.h>

namespace layertrace::tools {

struct SimgpuOptions {
  std::map<std::string, std::string> settings;  // SIMGPU_… variables that the command line gives
  std::vector<std::string> program;             // and its arguments
};

// Looks up an environment variable; nullptr for one that is not set.
using GetVariable = std::function<const char*(const char*)>;

// What must be preloaded, in order, for what the variables ask for. Fails on a word that the
// simulated device does not know, and where a library is missing from the folder.
Result<std::string> simgpu_preload(const std::filesystem::path& folder,
                                   const SimgpuOptions& options, const GetVariable& environment);

// The devices and the faults that there are.
std::string describe_simgpu();

// Becomes the program. Returns only if that fails: the error, and an exit code as a shell has it.
int run_simgpu(const SimgpuOptions& options);

}  // namespace layertrace::tools
