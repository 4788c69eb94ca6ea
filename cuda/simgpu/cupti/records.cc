#include "cupti/records.h"

#include <cupti_activity_deprecated.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "core/machine.h"

namespace simgpu::cupti {
namespace {

constexpr std::uint32_t kOldVersion = 26;      // CUDA 12.8
constexpr std::uint32_t kAncientVersion = 18;  // CUDA 11.8

constexpr std::uint64_t kHostOrder = 0;

// Kept: asking the system for it takes as long as all the rest of a record.
std::atomic<std::uint32_t> known_process{0};
std::uint32_t process_id() {
  const std::uint32_t known = known_process.load(std::memory_order_relaxed);
  if (known != 0) return known;
  const auto process = static_cast<std::uint32_t>(getpid());
  known_process.store(process, std::memory_order_relaxed);
  return process;
}

std::uint8_t memory_kind(bool on_device, bool pageable) {
  if (on_device) return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  return pageable ? CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE : CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
}

std::uint8_t copy_kind(CopyPath path) {
  switch (path) {
    case CopyPath::kToDevice:
      return CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    case CopyPath::kToHost:
      return CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    case CopyPath::kWithin:
      return CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
    case CopyPath::kPeer:
      return CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    case CopyPath::kOnHost:
      return CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
  }
  return CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
}

// What both versions of a kernel's record have.
template <typename T>
Record make_kernel(const KernelNote& kernel, std::uint64_t ready_ns) {
  constexpr std::uint16_t kRegisters = 32;
  T record{};
  record.kind = kernel.kind;
  record.registersPerThread = kRegisters;
  record.start = kernel.span.start;
  record.end = kernel.span.end;
  record.completed = kernel.span.end;
  record.deviceId = static_cast<std::uint32_t>(kernel.device);
  record.contextId = context_id(kernel.device);
  record.streamId = kernel.stream_id;
  record.gridX = static_cast<std::int32_t>(kernel.grid[0]);
  record.gridY = static_cast<std::int32_t>(kernel.grid[1]);
  record.gridZ = static_cast<std::int32_t>(kernel.grid[2]);
  record.blockX = static_cast<std::int32_t>(kernel.block[0]);
  record.blockY = static_cast<std::int32_t>(kernel.block[1]);
  record.blockZ = static_cast<std::int32_t>(kernel.block[2]);
  record.dynamicSharedMemory = static_cast<std::int32_t>(kernel.shared_bytes);
  record.correlationId = kernel.correlation;
  record.gridId = kernel.correlation;
  record.name = kernel.name;
  record.graphNodeId = kernel.node;
  record.graphId = kernel.graph;
  record.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  if constexpr (requires { record.priority; }) record.priority = kernel.priority;
  return Record::of(record, ready_ns, order_of(kernel.device, kernel.stream_id));
}

template <typename T>
Record make_copy(const Activity& copy, Span span) {
  T record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = copy_kind(copy.path);
  const bool from_host = copy.path == CopyPath::kToDevice || copy.path == CopyPath::kOnHost;
  const bool to_host = copy.path == CopyPath::kToHost || copy.path == CopyPath::kOnHost;
  record.srcKind = memory_kind(!from_host, copy.from_pageable);
  record.dstKind = memory_kind(!to_host, copy.to_pageable);
  record.flags = copy.is_async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  record.bytes = copy.bytes;
  record.start = span.start;
  record.end = span.end;
  record.deviceId = static_cast<std::uint32_t>(copy.device);
  record.contextId = context_id(copy.device);
  record.streamId = copy.stream_id;
  record.correlationId = copy.correlation;
  record.graphNodeId = copy.node;
  record.graphId = copy.graph;
  record.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
  if constexpr (requires { record.copyCount; }) record.copyCount = 1;
  return Record::of(record, copy.slot.end_ns, order_of(copy.device, copy.stream_id));
}

template <typename T>
Record make_synchronization(const Synchronization& what, Span span) {
  T record{};
  record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  record.start = span.start;
  record.end = span.end;
  record.correlationId = what.correlation;
  record.contextId = context_id(what.device);
  record.streamId = what.stream_id;
  record.cudaEventId = what.event_id;
  if constexpr (requires { record.cudaEventSyncId; }) {
    const bool of_event = what.kind == Synchronization::Kind::kEvent ||
                          what.kind == Synchronization::Kind::kStreamWait;
    record.cudaEventSyncId =
        of_event ? what.event_record_id : std::uint64_t{CUPTI_SYNCHRONIZATION_INVALID_VALUE};
  }
  switch (what.kind) {
    case Synchronization::Kind::kEvent:
      record.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
      record.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
      break;
    case Synchronization::Kind::kStreamWait:
      record.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
      break;
    case Synchronization::Kind::kStream:
      record.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
      record.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
      break;
    case Synchronization::Kind::kDevice:
      record.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
      record.streamId = record.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
      break;
  }
  return Record::of(record, what.end_ns, kHostOrder);
}

template <typename T>
Record make_event(const EventMark& mark, std::uint64_t time) {
  T record{};
  record.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  record.correlationId = mark.correlation;
  record.contextId = context_id(mark.device);
  record.streamId = mark.stream_id;
  record.eventId = mark.event_id;
  if constexpr (requires { record.deviceTimestamp; }) {
    record.deviceId = static_cast<std::uint32_t>(mark.device);
    record.deviceTimestamp = time;
    record.cudaEventSyncId = mark.correlation;
  }
  return Record::of(record, mark.time_ns, order_of(mark.device, mark.stream_id));
}

template <typename T>
Record make_overhead(CUpti_ActivityOverheadKind kind, Span span, std::uint32_t thread) {
  T record{};
  record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  record.overheadKind = kind;
  record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  record.objectId.pt.processId = process_id();
  record.objectId.pt.threadId = thread;
  record.start = span.start;
  record.end = span.end;
  return Record::of(record, 0, kHostOrder);
}

template <typename T>
Record make_device(int device) {
  constexpr std::uint32_t kKilo = 1000;
  constexpr std::uint32_t kWarp = 32;
  const DeviceProfile& profile = Machine::instance().profile();
  T record{};
  record.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  record.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS;
  record.globalMemoryBandwidth = static_cast<std::uint64_t>(profile.memory_bytes_per_ns * 1e6);
  record.globalMemorySize = config().memory_bytes;
  record.constantMemorySize = 64U << 10;
  record.l2CacheSize = static_cast<std::uint32_t>(profile.l2_bytes);
  record.numThreadsPerWarp = kWarp;
  record.coreClockRate = static_cast<std::uint32_t>(profile.clock_khz);
  record.numMemcpyEngines = 2;
  record.numMultiprocessors = static_cast<std::uint32_t>(profile.multiprocessors);
  record.maxWarpsPerMultiprocessor =
      static_cast<std::uint32_t>(profile.threads_per_multiprocessor) / kWarp;
  record.maxBlocksPerMultiprocessor = static_cast<std::uint32_t>(profile.blocks_per_multiprocessor);
  record.maxSharedMemoryPerMultiprocessor =
      static_cast<std::uint32_t>(profile.shared_bytes_per_multiprocessor);
  record.maxRegistersPerMultiprocessor = record.maxRegistersPerBlock = 64U << 10;
  record.maxSharedMemoryPerBlock = 48U << 10;
  record.maxThreadsPerBlock = record.maxBlockDimX = record.maxBlockDimY = 1024;
  record.maxBlockDimZ = 64;
  record.maxGridDimX = 0x7fffffff;
  record.maxGridDimY = record.maxGridDimZ = 65 * kKilo + 535;
  record.computeCapabilityMajor = static_cast<std::uint32_t>(profile.major);
  record.computeCapabilityMinor = static_cast<std::uint32_t>(profile.minor);
  record.id = static_cast<std::uint32_t>(device);
  record.name = profile.device_name.data();  // a literal
  record.isCudaVisible = 1;
  return Record::of(record, 0, kHostOrder);
}

template <typename T>
Record make_context(int device) {
  T record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  record.contextId = context_id(device);
  record.deviceId = static_cast<std::uint32_t>(device);
  record.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  record.nullStreamId = kLegacyStreamId;
  record.numMultiprocessors =
      static_cast<std::uint16_t>(Machine::instance().profile().multiprocessors);
  if constexpr (requires { record.processId; }) record.processId = process_id();
  return Record::of(record, 0, kHostOrder);
}

template <typename T>
Record make_graph(const GraphRun& run, Span span) {
  T record{};
  record.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  record.correlationId = run.correlation;
  record.start = span.start;
  record.end = span.end;
  record.deviceId = static_cast<std::uint32_t>(run.device);
  record.graphId = run.graph;
  record.contextId = context_id(run.device);
  record.streamId = run.stream_id;
  if constexpr (requires { record.endDeviceId; }) {
    record.endDeviceId = record.deviceId;
    record.endContextId = record.contextId;
  }
  return Record::of(record, run.slot.end_ns, order_of(run.device, run.stream_id));
}

template <typename T>
TimeFields fields_of(std::byte* record) {
  auto* typed = reinterpret_cast<T*>(record);
  return {&typed->start, &typed->end, &typed->correlationId};
}

}  // namespace

const Config& config() { return Machine::instance().config(); }
bool is_old_version() { return config().fault(FaultKind::kOldCupti).has_value(); }
std::uint32_t api_version() {
  if (config().fault(FaultKind::kAncientCupti)) return kAncientVersion;
  return is_old_version() ? kOldVersion : CUPTI_API_VERSION;
}
std::uint32_t context_id(int device) { return static_cast<std::uint32_t>(device) + 1; }
std::uint64_t order_of(int device, std::uint32_t stream) {
  return std::uint64_t{context_id(device)} << 32 | stream;
}

std::size_t record_size(CUpti_ActivityKind kind) {
  const bool old = is_old_version();
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return old ? sizeof(CUpti_ActivityKernel9) : sizeof(CUpti_ActivityKernel11);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return old ? sizeof(CUpti_ActivityMemcpy5) : sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return old ? sizeof(CUpti_ActivitySynchronization) : sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return old ? sizeof(CUpti_ActivityCudaEvent) : sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return old ? sizeof(CUpti_ActivityOverhead2) : sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return old ? sizeof(CUpti_ActivityDevice5) : sizeof(CUpti_ActivityDevice6);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return old ? sizeof(CUpti_ActivityContext3) : sizeof(CUpti_ActivityContext4);
    case CUPTI_ACTIVITY_KIND_NAME:
      return sizeof(CUpti_ActivityName);
    case CUPTI_ACTIVITY_KIND_STREAM:
      return sizeof(CUpti_ActivityStream);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return old ? sizeof(CUpti_ActivityGraphTrace) : sizeof(CUpti_ActivityGraphTrace2);
    default:
      return 0;
  }
}

KernelNote::KernelNote(const Activity& kernel, Span when, CUpti_ActivityKind as)
    : span(when),
      name(kernel.name),
      node(kernel.node),
      shared_bytes(kernel.shared_bytes),
      correlation(kernel.correlation),
      graph(kernel.graph),
      device(kernel.device),
      stream_id(kernel.stream_id),
      priority(kernel.priority),
      kind(as) {
  std::ranges::copy(kernel.grid, grid);
  std::ranges::copy(kernel.block, block);
}

Record kernel_record(const KernelNote& kernel, std::uint64_t ready_ns) {
  return is_old_version() ? make_kernel<CUpti_ActivityKernel9>(kernel, ready_ns)
                          : make_kernel<CUpti_ActivityKernel11>(kernel, ready_ns);
}

Record copy_record(const Activity& copy, Span span) {
  return is_old_version() ? make_copy<CUpti_ActivityMemcpy5>(copy, span)
                          : make_copy<CUpti_ActivityMemcpy6>(copy, span);
}

Record peer_copy_record(const Activity& copy, Span span) {
  CUpti_ActivityMemcpyPtoP4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  record.srcKind = record.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  record.flags = copy.is_async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  record.bytes = copy.bytes;
  record.start = span.start;
  record.end = span.end;
  record.deviceId = record.srcDeviceId = static_cast<std::uint32_t>(copy.device);
  record.contextId = record.srcContextId = context_id(copy.device);
  record.streamId = copy.stream_id;
  record.dstDeviceId = static_cast<std::uint32_t>(copy.peer_device);
  record.dstContextId = context_id(copy.peer_device);
  record.correlationId = copy.correlation;
  record.graphNodeId = copy.node;
  record.graphId = copy.graph;
  record.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
  return Record::of(record, copy.slot.end_ns, order_of(copy.device, copy.stream_id));
}

Record fill_record(const Activity& fill, Span span) {
  CUpti_ActivityMemset4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  record.value = static_cast<std::uint32_t>(fill.value);
  record.bytes = fill.bytes;
  record.start = span.start;
  record.end = span.end;
  record.deviceId = static_cast<std::uint32_t>(fill.device);
  record.contextId = context_id(fill.device);
  record.streamId = fill.stream_id;
  record.correlationId = fill.correlation;
  record.flags = fill.is_async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
  record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  record.graphNodeId = fill.node;
  record.graphId = fill.graph;
  record.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  return Record::of(record, fill.slot.end_ns, order_of(fill.device, fill.stream_id));
}

CUpti_ActivityAPI api_record(const ApiCall& call, Span span, std::uint32_t thread) {
  CUpti_ActivityAPI record{};
  record.kind =
      call.api == Api::kRuntime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
  record.cbid = call.id;
  record.start = span.start;
  record.end = span.end;
  record.processId = process_id();
  record.threadId = thread;
  record.correlationId = call.correlation;
  record.returnValue = static_cast<std::uint32_t>(call.result);
  return record;
}

CUpti_ActivityExternalCorrelation correlation_record(CUpti_ExternalCorrelationKind kind,
                                                     std::uint64_t id, std::uint32_t correlation) {
  CUpti_ActivityExternalCorrelation record{};
  record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  record.externalKind = kind;
  record.externalId = id;
  record.correlationId = correlation;
  return record;
}

Record synchronization_record(const Synchronization& synchronization, Span span) {
  return is_old_version()
             ? make_synchronization<CUpti_ActivitySynchronization>(synchronization, span)
             : make_synchronization<CUpti_ActivitySynchronization2>(synchronization, span);
}

Record event_record(const EventMark& mark, std::uint64_t time) {
  return is_old_version() ? make_event<CUpti_ActivityCudaEvent>(mark, time)
                          : make_event<CUpti_ActivityCudaEvent2>(mark, time);
}

Record graph_record(const GraphRun& run, Span span) {
  return is_old_version() ? make_graph<CUpti_ActivityGraphTrace>(run, span)
                          : make_graph<CUpti_ActivityGraphTrace2>(run, span);
}

Record stream_record(const Stream& stream, std::uint32_t correlation) {
  constexpr unsigned kNonBlocking = 1;  // as a stream's flags have it
  CUpti_ActivityStream record{};
  record.kind = CUPTI_ACTIVITY_KIND_STREAM;
  record.contextId = context_id(stream.device);
  record.streamId = stream.id;
  record.priority = static_cast<std::uint32_t>(stream.priority);
  record.flag = stream.flags == kNonBlocking ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING
                                             : CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT;
  record.correlationId = correlation;
  return Record::of(record, 0, kHostOrder);
}

Record overhead_record(CUpti_ActivityOverheadKind kind, Span span, std::uint32_t thread) {
  return is_old_version() ? make_overhead<CUpti_ActivityOverhead2>(kind, span, thread)
                          : make_overhead<CUpti_ActivityOverhead3>(kind, span, thread);
}

Record device_record(int device) {
  return is_old_version() ? make_device<CUpti_ActivityDevice5>(device)
                          : make_device<CUpti_ActivityDevice6>(device);
}

Record context_record(int device) {
  return is_old_version() ? make_context<CUpti_ActivityContext3>(device)
                          : make_context<CUpti_ActivityContext4>(device);
}

Record name_record(int device) {
  CUpti_ActivityName record{};
  record.kind = CUPTI_ACTIVITY_KIND_NAME;
  record.objectKind = CUPTI_ACTIVITY_OBJECT_DEVICE;
  record.objectId.dcs.deviceId = static_cast<std::uint32_t>(device);
  record.name = Machine::instance().profile().device_name.data();  // a literal
  return Record::of(record, 0, kHostOrder);
}

void forget_process() noexcept { known_process.store(0, std::memory_order_relaxed); }

bool time_fields(std::byte* record, TimeFields* fields) {
  switch (reinterpret_cast<const CUpti_Activity*>(record)->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:  // both versions begin alike
      *fields = fields_of<CUpti_ActivityKernel9>(record);
      return true;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      *fields = fields_of<CUpti_ActivityMemcpy5>(record);
      return true;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      *fields = fields_of<CUpti_ActivityMemcpyPtoP4>(record);
      return true;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      *fields = fields_of<CUpti_ActivityMemset4>(record);
      return true;
    default:
      return false;
  }
}

void forget_end(std::byte* record) {
  TimeFields fields{};
  if (time_fields(record, &fields)) *fields.end = CUPTI_TIMESTAMP_UNKNOWN;
}

}  // namespace simgpu::cupti
