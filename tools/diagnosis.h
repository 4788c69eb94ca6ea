// What `layertrace doctor` makes of what it found: pure, so that every sick machine can be a test.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "activity/cuda_environment.h"
#include "python_environment.h"

namespace layertrace::tools {

// What was found, and nothing concluded from it.
struct Findings {
  bool driver_answers = true;  // in time
  bool kernel_module = false;  // NVIDIA's is loaded, whatever else is missing
  cuda::Driver driver;
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
  std::optional<cuda::Runtime> runtime;
  cuda::CuptiTrial cupti;
  std::optional<bool> restricted;  // counters are for administrators only
  bool administrator = false;
  std::optional<cuda::OtherProfiler> profiler;
  std::string nvtx_injection;
  bool nvtx_injection_exists = false;
  std::string simulated;  // the simulated device's name
  PythonEnvironment python;
  std::string perfetto_sdk;  // version
  std::string perfetto_ui;   // the folder of the local copy, "" if there is none
};

enum class Status { kOk, kNote, kProblem };
const char* name_of(Status status);  // "ok", "note", "problem"

struct Check {
  std::string check;
  Status status = Status::kOk;
  std::string detail;
  std::string remedy;  // "" where there is nothing to do
};

// Always the same checks in the same order.
std::vector<Check> diagnose(const Findings& found);

// What became of it: the command's exit codes.
enum class Verdict { kReady = 0, kProblem = 1, kNoGpu = 3 };
Verdict verdict_of(const std::vector<Check>& checks, const Findings& found);

// One line for each check, and one for the verdict.
std::string doctor_text(const std::vector<Check>& checks, const Findings& found);
std::string doctor_json(const std::vector<Check>& checks);

}  // namespace layertrace::tools
