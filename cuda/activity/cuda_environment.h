// What of CUDA this process and this machine have, and who else profiles here.
//
// A session that records nothing of the GPU has one of a dozen causes: no driver, a CUPTI of
// another CUDA, a user who may not profile, Nsight Systems around the program. All of it is asked
// while the program runs, by dlopen, so that it can be asked where there is nothing at all. No
// device is touched beyond its name: no context is made, no memory taken. No vendor header is
// needed here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace layertrace::cuda {

// Looks up an environment variable; nullptr for one that is not set.
using GetVariable = std::function<const char*(const char*)>;
const char* environment_variable(const char* name);

// The paths of the libraries that this process has loaded.
std::vector<std::string> loaded_libraries();

// ---- Who else profiles here ----

// A profiler that was put into this process from outside, and by what it is known. It records the
// GPU itself: CUPTI then has no place for a second one.
struct OtherProfiler {
  std::string name;
  std::string sign;
};
std::optional<OtherProfiler> other_profiler();
std::optional<OtherProfiler> other_profiler(const GetVariable& environment,
                                            const std::vector<std::string>& libraries);

// The library that NVTX hands its ranges to (NVTX_INJECTION64_PATH), "" where there is none. It
// listens to ranges, and is no profiler of the GPU by itself.
std::string nvtx_injection(const GetVariable& environment = environment_variable);

// ---- What there is ----

struct Device {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  std::uint64_t memory_bytes = 0;
};

struct Driver {
  bool found = false;  // libcuda.so.1 could be loaded
  int result = 0;      // of the call that failed, 0 if none did
  int version = 0;     // the newest CUDA that it serves: 13020 is 13.2
  std::vector<Device> devices;
};
Driver ask_driver();

struct Runtime {
  std::string path;
  int version = 0;  // as the driver's
};
// Of this process, beside the torch in `torch_folder` (its lib/; "": unknown), or of the toolkit.
std::optional<Runtime> ask_runtime(const std::string& torch_folder);

enum class CuptiAnswer {
  kReady,         // subscribed and enabled, and both undone
  kNotTried,      // found; there is no device to try it on
  kNotBuilt,      // layertrace was built without its headers
  kNotFound,      // nowhere
  kUnfit,         // found, but too old or incomplete
  kNoPrivileges,  // this user may not profile
  kSubscribed,    // it has a client already
  kRefused,       // for another reason
};
struct CuptiTrial {
  CuptiAnswer answer = CuptiAnswer::kNotTried;
  std::string path;
  std::uint32_t version = 0;  // as CUPTI numbers itself: 130200, or 26 before CUDA 13; 0: not asked
  std::string cause;          // why it is not ready
  std::string remedy;
};
// Looks for CUPTI as a session does and, if `has_device`, subscribes and enables what a session
// would, for a moment.
CuptiTrial try_cupti(const std::string& torch_folder, bool has_device);

// How a driver lets every user profile.
inline constexpr const char* kLiftRestriction =
    "Ask the machine's owner to write `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into "
    "a file in /etc/modprobe.d and reboot; or run as root, or with CAP_SYS_ADMIN (docker run "
    "--cap-add SYS_ADMIN)";

// "12.8" of 26, "13.2" of 130200; "" of a version that is not known.
std::string cuda_of_cupti(std::uint32_t version);

// Whether the driver keeps its performance counters to administrators, by the text of
// /proc/driver/nvidia/params; nothing where that does not say.
std::optional<bool> profiling_is_restricted(std::string_view params);

// Whether a process is one of them (CAP_SYS_ADMIN), by the text of its /proc/self/status.
bool is_administrator(std::string_view status);

// The name of the simulated device (simgpu) that this process runs on, "" if it does not.
std::string simulated_device();

}  // namespace layertrace::cuda
