#include "simgpu.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <variant>

#include "core/config.h"
#include "core/device_profile.h"
#include "output.h"

namespace layertrace::tools {
namespace {

namespace fs = std::filesystem;

struct Face {
  std::string_view file;
  std::string_view wheel;  // whose headers it is built from
};
// The machine first: the others are faces of it.
constexpr std::array kFaces = {
    Face{"libsimgpu.so", ""},
    Face{"libcudart.so.13", "nvidia-cuda-runtime and nvidia-cuda-crt"},
    Face{"libcuda.so.1", "nvidia-cuda-runtime"},
    Face{"libcupti.so.13", "nvidia-cuda-cupti"},
    Face{"libcublasLt.so.13", "nvidia-cublas"},
    Face{"libcublas.so.13", "nvidia-cublas"},
    Face{"libnvidia-ml.so.1", ""},
    Face{"libsimgpu_no_cudnn.so", ""},
};
constexpr Face kNoCupti{"libsimgpu_no_cupti.so", ""};

// Beside the command: in a build, and where it was installed.
fs::path find_folder() {
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  const fs::path root = command.parent_path().parent_path();
  for (const fs::path& libraries : {root / "lib", root / LAYERTRACE_LIBDIR}) {
    if (fs::exists(libraries / "simgpu", error)) return libraries / "simgpu";
  }
  return root / "lib" / "simgpu";
}

Error missing(const fs::path& folder, const Face& face) {
  std::string remedy = "Build it: `make build`";
  if (!face.wheel.empty())
    remedy += fmt::format(", with its headers in the environment (pip install {})", face.wheel);
  return {"cannot simulate a GPU", fmt::format("{} is not in {}", face.file, folder.string()),
          remedy};
}

// Whatever the environment says besides.
bool has_wrong_option(const SimgpuOptions& options) {
  const auto config = simgpu::read_config([&](const char* name) -> const char* {
    const auto given = options.settings.find(name);
    return given != options.settings.end() ? given->second.c_str() : nullptr;
  });
  return std::holds_alternative<std::string>(config);
}

}  // namespace

Result<std::string> simgpu_preload(const fs::path& folder, const SimgpuOptions& options,
                                   const GetVariable& environment) {
  const auto variable = [&](const char* name) -> const char* {
    const auto given = options.settings.find(name);
    return given != options.settings.end() ? given->second.c_str() : environment(name);
  };
  const auto config = simgpu::read_config(variable);
  if (const auto* wrong = std::get_if<std::string>(&config))
    return Error{"cannot simulate a GPU", *wrong, ""};

  std::vector<Face> faces(kFaces.begin(), kFaces.end());
  const auto& faults = std::get<simgpu::Config>(config);
  if (faults.fault(simgpu::FaultKind::kNoCupti) || faults.fault(simgpu::FaultKind::kAncientCupti))
    faces.push_back(kNoCupti);
  std::string preload;
  for (const Face& face : faces) {
    const fs::path library = folder / face.file;
    std::error_code error;
    if (!fs::exists(library, error)) return missing(folder, face);
    if (library.string().find_first_of(": ") != std::string::npos) {
      return Error{"cannot simulate a GPU",
                   "the loader takes no path with a space or a colon: " + library.string(),
                   "Move layertrace to a folder without"};
    }
    preload += (preload.empty() ? "" : ":") + library.string();
  }
  if (const char* before = environment("LD_PRELOAD"); before != nullptr && *before != '\0')
    preload += std::string(":") + before;
  return preload;
}

std::string describe_simgpu() {
  std::string text = "Devices (--profile, SIMGPU_PROFILE):\n";
  for (const simgpu::DeviceProfile& profile : simgpu::device_profiles()) {
    text +=
        fmt::format("  {:<22} {}, compute capability {}.{}, {} GiB\n", profile.name,
                    profile.device_name, profile.major, profile.minor, profile.memory_bytes >> 30);
  }
  text += "\nFaults (--faults NAME[=N],…, SIMGPU_FAULTS):\n";
  for (const simgpu::FaultName& fault : simgpu::fault_names()) {
    const std::string name = std::string(fault.name) + (fault.usual != 0 ? "=N" : "");
    text +=
        fmt::format("  {:<22} {}{}\n", name, fault.meaning,
                    fault.usual != 0 ? fmt::format(" (N is {} unless given)", fault.usual) : "");
  }
  return text;
}

int run_simgpu(const SimgpuOptions& options) {
  const auto fail = [](const Error& error, int code) {
    std::fprintf(stderr, "layertrace: %s\n", error.message().c_str());
    return code;
  };
  const auto preload = simgpu_preload(
      find_folder(), options, [](const char* name) -> const char* { return std::getenv(name); });
  if (!preload) return fail(preload.error(), has_wrong_option(options) ? kUsageError : kFailed);
  for (const auto& [name, value] : options.settings) setenv(name.c_str(), value.c_str(), 1);
  setenv("LD_PRELOAD", preload->c_str(), 1);
  // It speaks of real devices, and where there is none it often says that none may be seen.
  unsetenv("CUDA_VISIBLE_DEVICES");

  std::signal(SIGPIPE, SIG_DFL);  // the command ignores it, the program need not
  std::vector<char*> arguments;
  arguments.reserve(options.program.size() + 1);
  for (const std::string& argument : options.program)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  constexpr int kNotFound = 127;
  constexpr int kNotExecutable = 126;
  return fail({"cannot run " + options.program[0], std::strerror(errno), ""},
              errno == ENOENT ? kNotFound : kNotExecutable);
}

}  // namespace layertrace::tools
