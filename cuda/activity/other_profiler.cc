// How other profilers are known. NVIDIA documents little of it. What is documented: that the driver
// loads the library in CUDA_INJECTION64_PATH into each process that initialises CUDA, and NVTX the
// one in NVTX_INJECTION64_PATH. The rest is what these tools have been seen to do, and what other
// programs go by (Nsight Systems and Compute 2020 to 2026): a later version may do otherwise, and
// is then met where CUPTI says that it has a subscriber.
#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdlib>

#include "activity/cuda_environment.h"

namespace layertrace::cuda {
namespace {

struct Mark {
  std::string_view text;
  std::string_view profiler;
};

constexpr std::string_view kSystems = "Nsight Systems";
constexpr std::string_view kCompute = "Nsight Compute";
constexpr std::string_view kSanitizer = "Compute Sanitizer";

// Variables that a tool sets for the program that it starts.
constexpr std::array kVariables = {
    Mark{"NSYS_PROFILING_SESSION_ID", kSystems},
    Mark{"NV_COMPUTE_PROFILER_PERFWORKS_DIR", kCompute},
    Mark{"NV_SANITIZER_INJECTION_PORT_RANGE_BEGIN", kSanitizer},
    Mark{"NVPROF_ID", "nvprof"},
};

// Parts of the names of libraries that a tool brings into it. Not libnvperf_*: CUPTI itself loads
// it. The tree launcher is of several of NVIDIA's tools: it says only that there is one, so it
// stands last.
constexpr std::array kLibraries = {
    Mark{"libToolsInjection", kSystems},
    Mark{"libcuda-injection.so", kCompute},
    Mark{"libsanitizer-collection", kSanitizer},
    Mark{"libTreeLauncherTargetInjection", "an NVIDIA tool"},
    Mark{"libInterceptorInjectionTarget", "an NVIDIA tool"},
};

std::string_view value_of(const GetVariable& environment, std::string_view name) {
  const char* value = environment(name.data());  // all names here are literals
  return value != nullptr ? value : "";
}

std::string_view name_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

const Mark* mark_of_library(std::string_view path) {
  for (const Mark& mark : kLibraries) {
    if (name_of(path).find(mark.text) != std::string_view::npos) return &mark;
  }
  return nullptr;
}

std::optional<OtherProfiler> by_library(const std::vector<std::string>& libraries) {
  for (const Mark& mark : kLibraries) {
    for (const std::string& path : libraries) {
      if (name_of(path).find(mark.text) != std::string_view::npos)
        return OtherProfiler{std::string(mark.profiler), path + " is loaded"};
    }
  }
  return std::nullopt;
}

std::optional<OtherProfiler> by_injection(const GetVariable& environment) {
  const std::string path(value_of(environment, "CUDA_INJECTION64_PATH"));
  if (path.empty()) return std::nullopt;
  const Mark* mark = mark_of_library(path);
  return OtherProfiler{mark != nullptr ? std::string(mark->profiler) : "a CUDA tool",
                       "CUDA_INJECTION64_PATH is " + path};
}

}  // namespace

const char* environment_variable(const char* name) { return std::getenv(name); }

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t /*size*/, void* data) {
        if (info->dlpi_name != nullptr && *info->dlpi_name != '\0')
          static_cast<std::vector<std::string>*>(data)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

std::optional<OtherProfiler> other_profiler(const GetVariable& environment,
                                            const std::vector<std::string>& libraries) {
  for (const Mark& mark : kVariables) {
    if (!value_of(environment, mark.text).empty())
      return OtherProfiler{std::string(mark.profiler), std::string(mark.text) + " is set"};
  }
  if (auto loaded = by_library(libraries)) return loaded;
  return by_injection(environment);
}

std::optional<OtherProfiler> other_profiler() {
  return other_profiler(environment_variable, loaded_libraries());
}

std::string nvtx_injection(const GetVariable& environment) {
  return std::string(value_of(environment, "NVTX_INJECTION64_PATH"));
}

}  // namespace layertrace::cuda
