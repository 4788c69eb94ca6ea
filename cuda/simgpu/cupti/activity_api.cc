// CUPTI's activity functions.
#include <atomic>
#include <cstring>

#include "core/face.h"
#include "cupti/tool.h"
#include "runtime/thread_state.h"

using simgpu::Machine;
using simgpu::cupti::Tool;

namespace {

Tool& tool() { return Tool::instance(); }

bool has_fault(simgpu::FaultKind kind) {
  return Machine::instance().config().fault(kind).has_value();
}

// Each question counts.
bool is_refused_now() {
  static std::atomic<std::uint64_t> asked = 0;
  const auto from = Machine::instance().config().fault(simgpu::FaultKind::kLateRefusal);
  if (!from || ++asked < *from) return false;
  Machine::instance().count_fault(simgpu::FaultKind::kLateRefusal);
  return true;
}

thread_local CUptiResult last_error = CUPTI_SUCCESS;

CUptiResult failed(CUptiResult result) { return last_error = result; }

CUptiResult set_enabled(CUpti_ActivityKind kind, bool on) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
    return failed(CUPTI_ERROR_INVALID_KIND);
  if (simgpu::cupti::record_size(kind) == 0) return failed(CUPTI_ERROR_NOT_SUPPORTED);
  if (on && has_fault(simgpu::FaultKind::kNoPrivileges))
    return failed(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  if (on && kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && is_refused_now())
    return failed(CUPTI_ERROR_DISABLED);
  tool().enable(kind, on);
  return CUPTI_SUCCESS;
}

bool is_kind(CUpti_ExternalCorrelationKind kind) {
  return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
         kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

// Without a context, the thread's current one.
simgpu::Device* device_of(CUcontext context) {
  Machine& machine = Machine::instance();
  if (context == nullptr && machine.device_count() != 0)
    return &machine.device(simgpu::this_thread().device);
  for (int i = 0; i < machine.device_count(); ++i) {
    if (reinterpret_cast<CUcontext>(&machine.device(i)) == context) return &machine.device(i);
  }
  return nullptr;
}

// What a client may set. They steer CUPTI's own memory, of which there is none here, but are kept.
std::size_t attributes[16] = {
    3'200'000, 8'388'608, 250, 65'536, 250, 0, 3, 3, 0,
};

CUptiResult attribute_size(CUpti_ActivityAttribute attribute, std::size_t* size,
                           std::size_t* expected) {
  if (attribute < 0 || attribute > CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED)
    return failed(CUPTI_ERROR_INVALID_PARAMETER);
  const bool is_byte = attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER ||
                       attribute == CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED;
  *expected = is_byte ? sizeof(std::uint8_t) : sizeof(std::size_t);
  if (size == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  return *size >= *expected ? CUPTI_SUCCESS : failed(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
}

}  // namespace

// ---- Kinds ----

SIMGPU_API CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  return set_enabled(kind, true);
}
SIMGPU_API CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  return set_enabled(kind, true);
}
SIMGPU_API CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  return set_enabled(kind, false);
}
SIMGPU_API CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind) {
  return device_of(context) != nullptr ? set_enabled(kind, true)
                                       : failed(CUPTI_ERROR_INVALID_CONTEXT);
}
SIMGPU_API CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind) {
  return device_of(context) != nullptr ? set_enabled(kind, false)
                                       : failed(CUPTI_ERROR_INVALID_CONTEXT);
}
SIMGPU_API CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
  tool().enable_function(simgpu::Api::kRuntime, cbid, enable != 0);
  return CUPTI_SUCCESS;
}
SIMGPU_API CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  tool().enable_function(simgpu::Api::kDriver, cbid, enable != 0);
  return CUPTI_SUCCESS;
}

// Times of queueing and submission, launch attributes, traces by the hardware: not simulated. The
// fields stay unknown, as CUPTI has it where they are not collected.
SIMGPU_API CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t /*enable*/) {
  return CUPTI_SUCCESS;
}
SIMGPU_API CUptiResult cuptiActivityEnableLaunchAttributes(uint8_t /*enable*/) {
  return CUPTI_SUCCESS;
}
SIMGPU_API CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t /*enable*/) {
  return CUPTI_SUCCESS;
}
SIMGPU_API CUptiResult cuptiActivityEnableDeviceGraph(uint8_t enable) {
  return enable == 0 ? CUPTI_SUCCESS : failed(CUPTI_ERROR_NOT_SUPPORTED);
}
SIMGPU_API CUptiResult cuptiActivityEnableHWTrace(uint8_t enable) {
  return enable == 0 ? CUPTI_SUCCESS : failed(CUPTI_ERROR_NOT_SUPPORTED);
}
SIMGPU_API CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable) {
  tool().enable_event_times(enable != 0);
  return CUPTI_SUCCESS;
}

// ---- Buffers ----

SIMGPU_API CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                      CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  tool().delivery().set_callbacks(request, complete);
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (!tool().delivery().has_callbacks()) return failed(CUPTI_ERROR_INVALID_OPERATION);
  tool().flush((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}
SIMGPU_API CUptiResult cuptiActivityFlush(CUcontext /*context*/, uint32_t /*stream*/,
                                          uint32_t flag) {
  return cuptiActivityFlushAll(flag);
}
SIMGPU_API CUptiResult cuptiActivityFlushPeriod(uint32_t time) {
  tool().delivery().set_period(time);
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                                                  CUpti_Activity** record) {
  if (buffer == nullptr || record == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  uint8_t* next = buffer;
  if (*record != nullptr) {
    const std::size_t size = simgpu::cupti::record_size((*record)->kind);
    if (size == 0) return failed(CUPTI_ERROR_INVALID_KIND);
    next = reinterpret_cast<uint8_t*>(*record) + size;
  }
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext /*context*/, uint32_t /*stream*/,
                                                         size_t* dropped) {
  if (dropped == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  *dropped = tool().delivery().take_dropped();
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                                 void* value) {
  std::size_t expected = 0;
  if (const CUptiResult result = attribute_size(attribute, size, &expected);
      result != CUPTI_SUCCESS)
    return result;
  if (value == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  attributes[attribute] = 0;
  std::memcpy(&attributes[attribute], value, expected);
  if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER)
    tool().delivery().set_zeroed(attributes[attribute] != 0);
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                                 void* value) {
  std::size_t expected = 0;
  if (const CUptiResult result = attribute_size(attribute, size, &expected);
      result != CUPTI_SUCCESS)
    return result;
  if (value == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  std::memcpy(value, &attributes[attribute], expected);
  *size = expected;
  return CUPTI_SUCCESS;
}

// ---- Correlation ----

SIMGPU_API CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                              uint64_t id) {
  if (!is_kind(kind)) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  tool().push(kind, id);
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                             uint64_t* last) {
  if (!is_kind(kind)) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  return tool().pop(kind, last) ? CUPTI_SUCCESS : failed(CUPTI_ERROR_QUEUE_EMPTY);
}

// ---- Times ----

SIMGPU_API CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  if (timestamp == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  *timestamp = tool().timestamps().now();
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  if (callback == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  if (has_fault(simgpu::FaultKind::kNoTimestampCallback)) return failed(CUPTI_ERROR_NOT_SUPPORTED);
  tool().set_timestamp_callback(callback);
  return CUPTI_SUCCESS;
}

// ---- Which is which ----

SIMGPU_API CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t* id) {
  const simgpu::Device* device = device_of(context);
  if (device == nullptr) return failed(CUPTI_ERROR_INVALID_CONTEXT);
  if (id == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  *id = static_cast<uint32_t>(device->number);
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiGetContextId(CUcontext context, uint32_t* id) {
  const simgpu::Device* device = device_of(context);
  if (device == nullptr) return failed(CUPTI_ERROR_INVALID_CONTEXT);
  if (id == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  *id = simgpu::cupti::context_id(device->number);
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
                                          uint32_t* id) {
  simgpu::Device* device = device_of(context);
  if (device == nullptr) return failed(CUPTI_ERROR_INVALID_CONTEXT);
  if (id == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
    const bool own = stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread != 0);
    *id = own ? simgpu::own_stream(device->number).id : device->legacy_stream.id;
  } else {
    *id = reinterpret_cast<const simgpu::Stream*>(stream)->id;
  }
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t* id) {
  return cuptiGetStreamIdEx(context, stream, 0, id);
}

SIMGPU_API CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  if (node == nullptr || id == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  *id = reinterpret_cast<const simgpu::Node*>(node)->id;
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t* id) {
  if (graph == nullptr || id == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  *id = reinterpret_cast<const simgpu::Graph*>(graph)->id;
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t* id) {
  if (exec == nullptr || id == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  *id = reinterpret_cast<const simgpu::GraphExec*>(exec)->id;
  return CUPTI_SUCCESS;
}

// ---- The rest ----

SIMGPU_API CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  if (type != CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT && type != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
    return failed(CUPTI_ERROR_NOT_SUPPORTED);
  tool().set_system_ids(type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  return CUPTI_SUCCESS;
}
SIMGPU_API CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  if (type == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  *type = tool().has_system_ids() ? CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
                                  : CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  return CUPTI_SUCCESS;
}
SIMGPU_API CUptiResult cuptiComputeCapabilitySupported(int major, int /*minor*/, int* support) {
  if (support == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  constexpr int kOldest = 7;
  *support = major >= kOldest ? 1 : 0;
  return CUPTI_SUCCESS;
}
SIMGPU_API CUptiResult cuptiDeviceSupported(CUdevice device, int* support) {
  if (support == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  if (device < 0 || device >= Machine::instance().device_count())
    return failed(CUPTI_ERROR_INVALID_DEVICE);
  *support = 1;
  return CUPTI_SUCCESS;
}
SIMGPU_API CUptiResult cuptiGetLastError() {
  const CUptiResult result = last_error;
  last_error = CUPTI_SUCCESS;
  return result;
}
SIMGPU_API CUptiResult cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return failed(CUPTI_ERROR_INVALID_PARAMETER);
  *version = simgpu::cupti::api_version();
  return CUPTI_SUCCESS;
}
SIMGPU_API CUptiResult cuptiFinalize() {
  for (int kind = 1; kind < CUPTI_ACTIVITY_KIND_COUNT; ++kind)
    tool().enable(static_cast<CUpti_ActivityKind>(kind), false);
  tool().subscription().unsubscribe();
  tool().update_watch();
  return CUPTI_SUCCESS;
}
