#include "activity/cuda_environment.h"

#include <dlfcn.h>

#include <array>
#include <charconv>
#include <cstddef>

#include "activity/library_places.h"
#include "base/simulation.h"

namespace layertrace::cuda {
namespace {

template <typename Function>
Function function_of(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// As cuda.h numbers them; layertrace is also built where that is not.
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;

// The driver's functions that are asked. CUresult and CUdevice are ints.
struct DriverFunctions {
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*memory)(std::size_t*, int) = nullptr;

  explicit DriverFunctions(void* library)
      : init(function_of<decltype(init)>(library, "cuInit")),
        version(function_of<decltype(version)>(library, "cuDriverGetVersion")),
        count(function_of<decltype(count)>(library, "cuDeviceGetCount")),
        get(function_of<decltype(get)>(library, "cuDeviceGet")),
        name(function_of<decltype(name)>(library, "cuDeviceGetName")),
        attribute(function_of<decltype(attribute)>(library, "cuDeviceGetAttribute")),
        memory(function_of<decltype(memory)>(library, "cuDeviceTotalMem_v2")) {}

  bool complete() const { return init && version && count && get && name && attribute && memory; }
};

// 0, or what the first call that failed has answered.
int describe_device(const DriverFunctions& driver, int number, Device& device) {
  int handle = 0;
  if (const int result = driver.get(&handle, number)) return result;
  std::array<char, 256> name{};
  if (const int result = driver.name(name.data(), static_cast<int>(name.size()) - 1, handle))
    return result;
  device.name = name.data();
  if (const int result = driver.attribute(&device.major, kCapabilityMajor, handle)) return result;
  if (const int result = driver.attribute(&device.minor, kCapabilityMinor, handle)) return result;
  std::size_t bytes = 0;
  const int result = driver.memory(&bytes, handle);
  device.memory_bytes = bytes;
  return result;
}

// The value behind "name:" at a line's start, "" if there is none.
std::string_view value_behind(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    const std::size_t start = line.find_first_not_of(" \t");
    return start == std::string_view::npos ? "" : line.substr(start);
  }
  return "";
}

}  // namespace

Driver ask_driver() {
  Driver driver;
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return driver;
  const DriverFunctions functions(library);
  if (!functions.complete()) return driver;
  driver.found = true;
  functions.version(&driver.version);  // needs no initialised driver
  driver.result = functions.init(0);
  int count = 0;
  if (driver.result == 0) driver.result = functions.count(&count);
  for (int number = 0; number < count && driver.result == 0; ++number) {
    Device device;
    driver.result = describe_device(functions, number, device);
    if (driver.result == 0) driver.devices.push_back(std::move(device));
  }
  return driver;
}

std::optional<Runtime> ask_runtime(const std::string& torch_folder) {
  Runtime runtime;
  const auto serves = [&](void* library) {
    const auto get_version = function_of<int (*)(int*)>(library, "cudaRuntimeGetVersion");
    if (get_version == nullptr || get_version(&runtime.version) != 0) return false;
    runtime.path = path_of_library(library);
    return true;
  };
  if (open_library(kRuntime, loaded_libraries(),
                   library_places(kRuntime, torch_folder, environment_variable), serves) == nullptr)
    return std::nullopt;
  return runtime;
}

std::string cuda_of_cupti(std::uint32_t version) {
  constexpr std::uint32_t kSinceCuda13 = 130000;
  if (version >= kSinceCuda13)
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
  struct Known {
    std::uint32_t version;
    const char* cuda;
  };
  // From cupti_version.h of CUDA 13.2.
  for (const Known& known :
       {Known{17, "11.6"}, Known{18, "11.8"}, Known{19, "12.0"}, Known{20, "12.2"},
        Known{21, "12.3"}, Known{22, "12.4"}, Known{23, "12.5"}, Known{24, "12.6"},
        Known{26, "12.8"}, Known{27, "12.9"}, Known{28, "12.9"}}) {
    if (known.version == version) return known.cuda;
  }
  return "";
}

std::optional<bool> profiling_is_restricted(std::string_view params) {
  const std::string_view value = value_behind(params, "RmProfilingAdminOnly:");
  if (value.empty()) return std::nullopt;
  return value.front() != '0';
}

bool is_administrator(std::string_view status) {
  constexpr unsigned kSysAdmin = 21;  // CAP_SYS_ADMIN of linux/capability.h
  const std::string_view value = value_behind(status, "CapEff:");
  std::uint64_t capabilities = 0;
  std::from_chars(value.data(), value.data() + value.size(), capabilities, 16);
  return (capabilities >> kSysAdmin & 1) != 0;
}

std::string simulated_device() { return simulation().device; }

}  // namespace layertrace::cuda
