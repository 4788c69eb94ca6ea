// `layertrace run`: a program that was not changed, recorded.
//
// The command sets up the environment, starts the program as its child, and waits. Python processes
// find layertrace through a sitecustomize on PYTHONPATH, LibTorch programs through a small
// preloaded library; both record on their own. The program's output and its exit code are its own.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <layertrace/layertrace.h>

namespace layertrace::tools {

struct RunOptions {
  std::string steps;   // "5:10"; "" for the default window
  std::string output;  // "" for the program's name
  bool ops = true;
  std::string timing = "both";  // how a GPU's time is taken
  std::string count = "first";  // when operators are counted
  bool fold_wrappers = false;
  std::string name = {};  // what the run is called in reports
  std::vector<std::string> program;
};

// "5:10" are the steps 5 to 9, counted from 0; "5:" all from 5 on, ":3" the first three. Two steps
// before them, where there are such, warm up.
Result<Schedule> parse_steps(const std::string& steps);

// The variables that the program gets; `root` is the folder above the command's own, `notes` one in
// which processes say that they record.
using Variables = std::map<std::string, std::string>;
Result<Variables> run_environment(const std::filesystem::path& root,
                                  const std::filesystem::path& notes, const RunOptions& options,
                                  const Variables& environment);

// Runs it. Returns its exit code, or ends by the signal that ended it.
int run_program(const RunOptions& options);

}  // namespace layertrace::tools
