// The management library, as far as PyTorch asks it: which devices there are, and that they have
// neither links nor fabrics nor other processes on them. No header of it comes with PyTorch; these
// functions need none, since they hand out numbers and text only.
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "core/face.h"
#include "core/machine.h"

namespace {

// As NVML numbers them.
constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;

constexpr int kDriverVersion = 13'020;  // CUDA 13.2
constexpr unsigned kFirstPciBus = 1;

simgpu::Machine& machine() { return simgpu::Machine::instance(); }

using Handle = simgpu::Device*;

int hand_out(std::string_view text, char* buffer, unsigned length) {
  if (buffer == nullptr) return kInvalidArgument;
  if (text.size() + 1 > length) return kInsufficientSize;
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  return kSuccess;
}

}  // namespace

SIMGPU_API int nvmlInit_v2() { return kSuccess; }
SIMGPU_API int nvmlInit() { return kSuccess; }
SIMGPU_API int nvmlShutdown() { return kSuccess; }

SIMGPU_API const char* nvmlErrorString(int error) {
  switch (error) {
    case kSuccess:
      return "Success";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNotFound:
      return "Not Found";
    default:
      return "Unknown Error";
  }
}

SIMGPU_API int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = kDriverVersion;
  return kSuccess;
}

SIMGPU_API int nvmlDeviceGetCount_v2(unsigned* count) {
  if (count == nullptr) return kInvalidArgument;
  *count = static_cast<unsigned>(machine().device_count());
  return kSuccess;
}

SIMGPU_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* device) {
  if (device == nullptr || std::cmp_greater_equal(index, machine().device_count()))
    return kInvalidArgument;
  *device = &machine().device(static_cast<int>(index));
  return kSuccess;
}

// "0000:01:00.0": the bus tells which.
SIMGPU_API int nvmlDeviceGetHandleByPciBusId_v2(const char* id, Handle* device) {
  if (id == nullptr || device == nullptr) return kInvalidArgument;
  const char* bus_text = std::strchr(id, ':');
  if (bus_text == nullptr) return kInvalidArgument;
  constexpr int kHexadecimal = 16;
  const auto bus = static_cast<unsigned>(std::strtoul(bus_text + 1, nullptr, kHexadecimal));
  if (bus < kFirstPciBus) return kNotFound;
  const int result = nvmlDeviceGetHandleByIndex_v2(bus - kFirstPciBus, device);
  return result == kSuccess ? kSuccess : kNotFound;
}

// As CUDA tells it.
SIMGPU_API int nvmlDeviceGetUUID(Handle device, char* uuid, unsigned length) {
  if (device == nullptr) return kInvalidArgument;
  return hand_out("GPU-73696d75-6c61-7465-642d-6770752d3" + std::to_string(device->number) + "00",
                  uuid, length);
}

SIMGPU_API int nvmlDeviceGetName(Handle device, char* name, unsigned length) {
  if (device == nullptr) return kInvalidArgument;
  return hand_out(machine().profile().device_name, name, length);
}

// ---- What a simulated device does not have ----

SIMGPU_API int nvmlDeviceGetNvLinkRemoteDeviceType(Handle /*device*/, unsigned /*link*/,
                                                   int* /*type*/) {
  return kNotSupported;
}
SIMGPU_API int nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle /*device*/, unsigned /*link*/,
                                                   void* /*info*/) {
  return kNotSupported;
}
SIMGPU_API int nvmlDeviceGetP2PStatus(Handle /*device*/, Handle /*other*/, int /*what*/,
                                      int* /*status*/) {
  return kNotSupported;
}
// Who asks says "not supported" in the answer beforehand, and that stays.
SIMGPU_API int nvmlDeviceGetGpuFabricInfoV(Handle /*device*/, void* info) {
  return info != nullptr ? kSuccess : kInvalidArgument;
}
SIMGPU_API int nvmlDeviceGetComputeRunningProcesses(Handle /*device*/, unsigned* count,
                                                    void* /*processes*/) {
  if (count == nullptr) return kInvalidArgument;
  *count = 0;
  return kSuccess;
}
SIMGPU_API int nvmlDeviceGetComputeRunningProcesses_v3(Handle device, unsigned* count,
                                                       void* processes) {
  return nvmlDeviceGetComputeRunningProcesses(device, count, processes);
}
