#include "doctor.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <thread>

#include "diagnosis.h"
#include "python_environment.h"
#include "view.h"

// Set by CMake, from the SDK that is compiled in.
#ifndef LAYERTRACE_PERFETTO_VERSION
#define LAYERTRACE_PERFETTO_VERSION "of an unknown version"
#endif

namespace layertrace::tools {
namespace {

// A sound driver answers within seconds, also one that wakes its devices first.
constexpr auto kDriverTimeout = std::chrono::seconds(30);

std::string content_of(const char* file) {
  std::ostringstream content;
  content << std::ifstream(file).rdbuf();
  return content.str();
}

// What loads libraries and calls into the driver.
struct CudaFindings {
  cuda::Driver driver;
  std::optional<cuda::Runtime> runtime;
  cuda::CuptiTrial cupti;
};

CudaFindings ask_cuda(const std::string& torch_folder) {
  CudaFindings found;
  found.driver = cuda::ask_driver();
  found.runtime = cuda::ask_runtime(torch_folder);
  found.cupti = cuda::try_cupti(torch_folder, !found.driver.devices.empty());
  return found;
}

// Nothing if the driver hangs; then so does the thread that asked it, until the process ends.
std::optional<CudaFindings> ask_cuda_in_time(const std::string& torch_folder) {
  auto promise = std::make_shared<std::promise<CudaFindings>>();
  auto answer = promise->get_future();
  std::thread([promise, torch_folder] { promise->set_value(ask_cuda(torch_folder)); }).detach();
  if (answer.wait_for(kDriverTimeout) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

void add_cuda(Findings& found) {
  const std::string& torch = found.python.torch_folder;
  auto asked = ask_cuda_in_time(torch.empty() ? "" : torch + "/lib");
  found.driver_answers = asked.has_value();
  if (!asked) return;
  found.driver = std::move(asked->driver);
  found.runtime = std::move(asked->runtime);
  found.cupti = std::move(asked->cupti);
}

Findings look_around(const DoctorOptions& options) {
  Findings found;
  const GetVariable environment = [](const char* name) { return std::getenv(name); };
  found.python = ask_python(pythons_to_ask(options.python, environment));
  // Before anything is loaded that might be taken for a profiler's.
  found.profiler = cuda::other_profiler();
  found.nvtx_injection = cuda::nvtx_injection();
  std::error_code error;
  found.nvtx_injection_exists = std::filesystem::is_regular_file(found.nvtx_injection, error);
  found.simulated = cuda::simulated_device();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) found.visible_devices = visible;
  found.kernel_module = std::filesystem::exists("/proc/driver/nvidia/version", error);
  found.restricted = cuda::profiling_is_restricted(content_of("/proc/driver/nvidia/params"));
  found.administrator = cuda::is_administrator(content_of("/proc/self/status"));
  add_cuda(found);
  found.perfetto_sdk = LAYERTRACE_PERFETTO_VERSION;
  if (const auto ui = find_perfetto_ui()) found.perfetto_ui = ui->string();
  return found;
}

}  // namespace

DoctorReport doctor(const DoctorOptions& options) {
  const Findings found = look_around(options);
  const std::vector<Check> checks = diagnose(found);
  return {options.json ? doctor_json(checks) : doctor_text(checks, found),
          static_cast<int>(verdict_of(checks, found))};
}

}  // namespace layertrace::tools
