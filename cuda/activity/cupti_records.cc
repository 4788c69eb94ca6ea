#include "activity/cupti_records.h"

#include <cupti_activity_deprecated.h>
#include <cxxabi.h>

#include <cstdlib>
#include <string>
#include <unordered_map>

#include "record/definitions.h"

namespace layertrace::cuda {
namespace {

// From here on records have the layouts of CUDA 13.
constexpr std::uint32_t kVersion13 = 130000;
constexpr std::uint32_t kVersion132 = 130200;

NameId name_of(const char* text) { return NameTable::instance().intern(text); }

// As people write it. The same few kernels come again and again, each under the same address.
NameId kernel_name(const char* mangled) {
  static auto* const kKnown = new std::unordered_map<std::string, NameId>;  // the writer's alone
  const auto [known, fresh] = kKnown->try_emplace(mangled, kNoName);
  if (!fresh) return known->second;
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  known->second = name_of(status == 0 && text != nullptr ? text : mangled);
  std::free(text);
  return known->second;
}

// False where it has no times that can be used; counted.
bool take_times(std::uint64_t start, std::uint64_t end, const DeviceClock& clock,
                DeviceActivity& activity, GpuHealth& health) {
  if (start == 0 || end == 0) {
    ++health.untimed;
    return false;
  }
  if (end < start) {
    ++health.reversed;
    return false;
  }
  activity.start_ticks = clock.to_ticks(start);
  activity.end_ticks = clock.to_ticks(end);
  return true;
}

template <typename T>
void read_kernel(const T& record, const DeviceClock& clock, DeviceConsumer& consumer,
                 GpuHealth& health) {
  DeviceActivity activity;
  if (!take_times(record.start, record.end, clock, activity, health)) return;
  activity.kind = DeviceKind::kKernel;
  activity.graph_node = record.graphNodeId;
  activity.correlation = record.correlationId;
  activity.name = record.name != nullptr ? kernel_name(record.name) : name_of("unknown kernel");
  activity.device = record.deviceId;
  activity.context = record.contextId;
  activity.stream = record.streamId;
  activity.registers = record.registersPerThread;
  activity.shared_bytes =
      static_cast<std::uint32_t>(record.staticSharedMemory + record.dynamicSharedMemory);
  activity.grid = {static_cast<std::uint32_t>(record.gridX),
                   static_cast<std::uint32_t>(record.gridY),
                   static_cast<std::uint32_t>(record.gridZ)};
  activity.block = {static_cast<std::uint32_t>(record.blockX),
                    static_cast<std::uint32_t>(record.blockY),
                    static_cast<std::uint32_t>(record.blockZ)};
  consumer.activity(activity);
}

const char* copy_name(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "copy on device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "copy on host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "copy device to device";
    default:
      return "copy";
  }
}

// Copies and sets have all that is needed in both layouts under the same names.
template <typename T>
void read_copy(const T& record, const char* name, DeviceKind kind, const DeviceClock& clock,
               DeviceConsumer& consumer, GpuHealth& health) {
  DeviceActivity activity;
  if (!take_times(record.start, record.end, clock, activity, health)) return;
  activity.kind = kind;
  activity.bytes = record.bytes;
  activity.graph_node = record.graphNodeId;
  activity.correlation = record.correlationId;
  activity.name = name_of(name);
  activity.device = record.deviceId;
  activity.context = record.contextId;
  activity.stream = record.streamId;
  consumer.activity(activity);
}

template <typename T>
const T& as(const CUpti_Activity& record) {
  return reinterpret_cast<const T&>(record);
}

}  // namespace

bool is_launch_record(const CUpti_Activity& record) noexcept {
  return record.kind == CUPTI_ACTIVITY_KIND_RUNTIME || record.kind == CUPTI_ACTIVITY_KIND_DRIVER ||
         record.kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
}

void read_launch_record(const CUpti_Activity& record, const DeviceClock& clock,
                        DeviceConsumer& consumer) {
  if (record.kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const auto& tag = as<CUpti_ActivityExternalCorrelation>(record);
    if (tag.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2)
      consumer.tag({tag.externalId, tag.correlationId});
    return;
  }
  const auto& call = as<CUpti_ActivityAPI>(record);
  consumer.launch(
      {clock.to_ticks(call.start), clock.to_ticks(call.end), call.correlationId, call.threadId});
}

void read_device_record(const CUpti_Activity& record, std::uint32_t version,
                        const DeviceClock& clock, DeviceConsumer& consumer, GpuHealth& health) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      if (version >= kVersion132)
        return read_kernel(as<CUpti_ActivityKernel11>(record), clock, consumer, health);
      if (version >= kVersion13)
        return read_kernel(as<CUpti_ActivityKernel10>(record), clock, consumer, health);
      return read_kernel(as<CUpti_ActivityKernel9>(record), clock, consumer, health);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      if (version >= kVersion13) {
        const auto& copy = as<CUpti_ActivityMemcpy6>(record);
        return read_copy(copy, copy_name(copy.copyKind), DeviceKind::kCopy, clock, consumer,
                         health);
      } else {
        const auto& copy = as<CUpti_ActivityMemcpy5>(record);
        return read_copy(copy, copy_name(copy.copyKind), DeviceKind::kCopy, clock, consumer,
                         health);
      }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& copy = as<CUpti_ActivityMemcpyPtoP4>(record);
      return read_copy(copy, "copy device to device", DeviceKind::kCopy, clock, consumer, health);
    }
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return read_copy(as<CUpti_ActivityMemset4>(record), "set", DeviceKind::kSet, clock, consumer,
                       health);
    default:
      ++health.unknown;
  }
}

}  // namespace layertrace::cuda
