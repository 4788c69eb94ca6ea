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

NameId demangled_name(const char* mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  const NameId name = name_of(status == 0 && text != nullptr ? text : mangled);
  std::free(text);
  return name;
}

}  // namespace

// As people write it. The same few kernels come again and again, each under the same address; but
// what was unloaded may have left its address to another.
NameId RecordReader::kernel_name(const char* mangled) {
  KnownName& known = kernel_names_[mangled];
  if (known.name == kNoName || known.mangled != mangled) known = {mangled, demangled_name(mangled)};
  return known.name;
}

namespace {

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

template <typename T>
const T& as(const CUpti_Activity& record) {
  return reinterpret_cast<const T&>(record);
}

std::uint32_t extent(std::int32_t value) { return static_cast<std::uint32_t>(value); }

}  // namespace

// False where it has no times that can be used; counted.
bool RecordReader::take_times(std::uint64_t start, std::uint64_t end, DeviceActivity& activity) {
  if (start == 0 || end == 0) {
    ++health_.untimed;
    return false;
  }
  activity.start_ticks = clock_.to_ticks(start);
  activity.end_ticks = clock_.to_ticks(end);
  // By our clock: theirs may have been set meanwhile.
  if (activity.end_ticks >= activity.start_ticks) return true;
  ++health_.reversed;
  return false;
}

template <typename T>
void RecordReader::read_kernel(const T& record, DeviceConsumer& consumer) {
  DeviceActivity activity;
  if (!take_times(record.start, record.end, activity)) return;
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
  activity.grid = {extent(record.gridX), extent(record.gridY), extent(record.gridZ)};
  activity.block = {extent(record.blockX), extent(record.blockY), extent(record.blockZ)};
  const std::uint32_t threads = activity.block[0] * activity.block[1] * activity.block[2];
  activity.occupancy =
      occupancies_.of(activity.device, {threads, activity.registers, activity.shared_bytes});
  consumer.activity(activity);
}

// Copies and sets have all that is needed in both layouts under the same names.
template <typename T>
void RecordReader::read_copy(const T& record, const char* name, DeviceKind kind,
                             DeviceConsumer& consumer) {
  DeviceActivity activity;
  if (!take_times(record.start, record.end, activity)) return;
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

void RecordReader::read_call(const CUpti_ActivityAPI& call, CUpti_CallbackDomain domain,
                             DeviceConsumer& consumer) {
  if (call.threadId == left_out_ && left_out_ != 0) return;
  const CuptiCalls::Call& known = calls_.of(domain, call.cbid);
  // Between two calls by which CUPTI is told which to leave out, others' come.
  if (!known.is_wanted) return;
  const bool timed = call.start != 0;  // CUPTI may not have the times
  consumer.launch({timed ? clock_.to_ticks(call.start) : 0, timed ? clock_.to_ticks(call.end) : 0,
                   call.correlationId, call.threadId, known.name, known.kind, known.asks_for_many});
}

void RecordReader::read(const CUpti_Activity& record, DeviceConsumer& consumer) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& tag = as<CUpti_ActivityExternalCorrelation>(record);
      if (tag.externalKind == kTagKind) consumer.tag({tag.externalId, tag.correlationId});
      return;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return read_call(as<CUpti_ActivityAPI>(record), CUPTI_CB_DOMAIN_RUNTIME_API, consumer);
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return read_call(as<CUpti_ActivityAPI>(record), CUPTI_CB_DOMAIN_DRIVER_API, consumer);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      if (version_ >= kVersion132) return read_kernel(as<CUpti_ActivityKernel11>(record), consumer);
      if (version_ >= kVersion13) return read_kernel(as<CUpti_ActivityKernel10>(record), consumer);
      return read_kernel(as<CUpti_ActivityKernel9>(record), consumer);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      if (version_ >= kVersion13) {
        const auto& copy = as<CUpti_ActivityMemcpy6>(record);
        return read_copy(copy, copy_name(copy.copyKind), DeviceKind::kCopy, consumer);
      } else {
        const auto& copy = as<CUpti_ActivityMemcpy5>(record);
        return read_copy(copy, copy_name(copy.copyKind), DeviceKind::kCopy, consumer);
      }
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return read_copy(as<CUpti_ActivityMemcpyPtoP4>(record), "copy device to device",
                       DeviceKind::kCopy, consumer);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return read_copy(as<CUpti_ActivityMemset4>(record), "set", DeviceKind::kSet, consumer);
    default:
      ++health_.unknown;
  }
}

}  // namespace layertrace::cuda
