#include "activity/cupti_activity.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string>

#include <layertrace/layertrace.h>

#include "activity/cupti_refusal.h"
#include "base/clock.h"

namespace layertrace::cuda {
namespace {

// Kernels as they overlap: the kind without "concurrent" would make them wait for each other.
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
constexpr CUpti_ActivityKind kCallKinds[] = {CUPTI_ACTIVITY_KIND_RUNTIME,
                                             CUPTI_ACTIVITY_KIND_DRIVER};
constexpr CUpti_CallbackId kCallbacks[] = {
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED};
// The calls that make a graph that can be run. One that fails is told by its end alone.
constexpr CUpti_CallbackId kRuntimeInstantiations[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v12000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithFlags_v11040,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithParams_v12000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithParams_ptsz_v12000};
constexpr CUpti_CallbackId kDriverInstantiations[] = {
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz};

void CUPTIAPI request_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  const CuptiBuffers::Lent lent = CuptiBuffers::instance().take();
  *buffer = lent.data;
  *bytes = lent.bytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                          std::size_t /*bytes*/, std::size_t valid_bytes) {
  CuptiBuffers::instance().give_back(buffer, valid_bytes);
}

std::uint64_t CUPTIAPI now() { return clock_ticks(); }

// CUPTI's own clock on Linux.
std::uint64_t CUPTIAPI realtime_ns() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  constexpr std::uint64_t kNsInS = 1'000'000'000;
  return static_cast<std::uint64_t>(time.tv_sec) * kNsInS +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// The innermost id that the calling thread has pushed: CUPTI does not tell it, and a node of a
// graph must know it when it is captured.
constinit thread_local std::uint64_t innermost_frame __attribute__((tls_model("initial-exec"))) = 0;
// The session in which the calling thread makes a graph that can be run, 0 while it makes none.
// What it was in the middle of when another session ended is nothing to the next.
constinit thread_local std::uint64_t instantiating_in = 0;

}  // namespace

CuptiActivity::CuptiActivity(const CuptiLibrary& cupti)
    : cupti_(cupti), reader_(cupti, clock_, health_) {
  static std::atomic<std::uint64_t> sessions = 0;
  session_ = ++sessions;
}

Result<void> CuptiActivity::start() {
  if (const CUptiResult result = cupti_.subscribe(&subscriber_, &on_callback, this);
      result != CUPTI_SUCCESS)
    return refused(result);
  subscribed_ = true;
  lost_before_ = CuptiBuffers::instance().lost();
  refused_before_ = CuptiBuffers::instance().refused();
  if (const CUptiResult result = cupti_.register_callbacks(&request_buffer, &take_buffer);
      result != CUPTI_SUCCESS)
    return refused(result);
  turn_callbacks(1);
  set_thread_ids();
  set_clock();
  CuptiBuffers::instance().want(true, cupti_.wants_buffer_always());
  count_dropped();
  health_.dropped = 0;  // before us, of whoever was its client then
  // Some refusals show only here; better now than in the middle of a training.
  if (auto enabled = enable(); !enabled) return enabled;
  disable();
  return {};
}

Result<void> CuptiActivity::enable() noexcept {
  CUptiResult result = CUPTI_SUCCESS;
  for (const CUpti_ActivityKind kind : kKinds) {
    if (result == CUPTI_SUCCESS) result = cupti_.enable(kind);
  }
  if (result == CUPTI_SUCCESS) result = enable_calls();
  if (result == CUPTI_SUCCESS) return {};
  disable();
  return refused(result);
}

void CuptiActivity::disable() noexcept {
  for (const CUpti_ActivityKind kind : kKinds) cupti_.disable(kind);
  for (const CUpti_ActivityKind kind : kCallKinds) cupti_.disable(kind);
}

// Of the host's calls only those that ask a device for something or wait for it: PyTorch makes ten
// others for each. A CUPTI that cannot tell them apart records all.
//
// All first, and then without the others: CUPTI's documentation also has it the other way round,
// single functions without their kind, but on some GPUs nothing is recorded then.
CUptiResult CuptiActivity::enable_calls() noexcept {
  for (const CUpti_ActivityKind kind : kCallKinds) {
    if (const CUptiResult result = cupti_.enable(kind); result != CUPTI_SUCCESS) return result;
  }
  if (cupti_.enable_runtime_call == nullptr || cupti_.enable_driver_call == nullptr)
    return CUPTI_SUCCESS;
  try {
    for (const CUpti_CallbackId id : reader_.calls().unwanted(CUPTI_CB_DOMAIN_RUNTIME_API))
      cupti_.enable_runtime_call(id, 0);
    for (const CUpti_CallbackId id : reader_.calls().unwanted(CUPTI_CB_DOMAIN_DRIVER_API))
      cupti_.enable_driver_call(id, 0);
  } catch (...) {  // no memory for the list
  }
  return CUPTI_SUCCESS;
}

// Calls are looked for among the records of their thread, whose id is the system's. CUPTI's own is
// another unless it is told so.
void CuptiActivity::set_thread_ids() noexcept {
  CUpti_ActivityThreadIdType before = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  if (cupti_.set_thread_id_type == nullptr || cupti_.get_thread_id_type == nullptr ||
      cupti_.get_thread_id_type(&before) != CUPTI_SUCCESS)
    return;
  if (cupti_.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) == CUPTI_SUCCESS)
    thread_ids_before_ = before;
}

void CuptiActivity::close() noexcept {
  if (!subscribed_) return;
  disable();
  turn_callbacks(0);
  cupti_.unsubscribe(subscriber_);
  subscribed_ = false;
  if (thread_ids_before_) cupti_.set_thread_id_type(*thread_ids_before_);
  // It cannot be taken back: from now on it tells what CUPTI would without it.
  if (gave_clock_) cupti_.register_timestamp_callback(&realtime_ns);
  CuptiBuffers::instance().want(false, cupti_.wants_buffer_always());
}

void CuptiActivity::push(std::uint64_t frame) noexcept {
  cupti_.push_id(kTagKind, frame);
  innermost_frame = frame;
}

void CuptiActivity::pop(std::uint64_t outer) noexcept {
  std::uint64_t frame = 0;
  cupti_.pop_id(kTagKind, &frame);
  innermost_frame = outer;
}

std::optional<std::uint32_t> CuptiActivity::stream_id(CUstream stream) const noexcept {
  std::uint32_t id = 0;
  if (cupti_.stream_id == nullptr || cupti_.stream_id(nullptr, stream, 0, &id) != CUPTI_SUCCESS)
    return std::nullopt;
  return id;
}

// ---- Graphs ----

// A CUPTI that does not know all of them refuses those.
void CuptiActivity::turn_callbacks(std::uint32_t on) noexcept {
  for (const CUpti_CallbackId id : kCallbacks)
    cupti_.enable_callback(on, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id);
  for (const CUpti_CallbackId id : kRuntimeInstantiations)
    cupti_.enable_callback(on, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, id);
  for (const CUpti_CallbackId id : kDriverInstantiations)
    cupti_.enable_callback(on, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
}

void CUPTIAPI CuptiActivity::on_callback(void* self, CUpti_CallbackDomain domain,
                                         CUpti_CallbackId id, const void* data) {
  // A call that makes such a graph begins or ends: the thread is in the middle of none.
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API)
    instantiating_in = 0;
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || data == nullptr) return;
  auto& activity = *static_cast<CuptiActivity*>(self);
  const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
  if (id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING) instantiating_in = activity.session_;
  if (id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED) instantiating_in = 0;
  const bool is_node =
      id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED || id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
  if (!is_node || resource.resourceDescriptor == nullptr) return;
  activity.on_graph_node(*static_cast<const CUpti_GraphData*>(resource.resourceDescriptor),
                         id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
}

void CuptiActivity::on_graph_node(const CUpti_GraphData& graph, bool cloned) noexcept {
  std::uint64_t node = 0;
  if (cupti_.graph_node_id(graph.node, &node) != CUPTI_SUCCESS) return;
  if (cloned) {
    std::uint64_t original = 0;
    if (cupti_.graph_node_id(graph.originalNode, &original) == CUPTI_SUCCESS)
      graph_nodes_.cloned(node, original);
    return;
  }
  // Making a graph that can be run makes nodes, too, which are not captured but copied.
  const std::uint64_t frame = innermost_frame;
  if (frame != 0 && instantiating_in != session_ &&
      layertrace::detail::recording.load(std::memory_order_relaxed) != 0)
    graph_nodes_.created(node, frame);
}

// ---- Records ----

void CuptiActivity::leave_out_this_thread() noexcept {
  if (thread_ids_before_) reader_.leave_out(static_cast<std::uint32_t>(gettid()));
}

void CuptiActivity::drain(DeviceConsumer& consumer, bool all) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  constexpr auto kLongest = std::chrono::milliseconds(500);
  const auto now = std::chrono::steady_clock::now();
  CuptiBuffers& buffers = CuptiBuffers::instance();
  if (all || now - flushed_ >= kPause) {
    flushed_ = now;
    read_clock();
    cupti_.flush_all(all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  }
  if (all) health_.buffers_lost += buffers.wait_for_all(kLongest);
  for (const DeviceGraphNode& node : graph_nodes_.take_new()) consumer.graph_node(node);
  const std::vector<CuptiBuffers::Filled> filled = buffers.take_filled();
  for_each(filled, [&](const CUpti_Activity& record) {
    ++health_.records;
    reader_.read(record, consumer);
  });
  count_dropped();
  buffers.reuse(filled);
}

GpuHealth CuptiActivity::health() const {
  GpuHealth health = health_;
  health.source = "CUPTI " + std::to_string(cupti_.version);
  health.cupti_version = cupti_.version;
  health.buffers_lost += CuptiBuffers::instance().lost() - lost_before_;
  health.no_buffer = CuptiBuffers::instance().refused() - refused_before_;
  return health;
}

void CuptiActivity::set_clock() {
  const bool gives =
      cupti_.takes_clock() || (cupti_.register_timestamp_callback != nullptr && !has_own_clock());
  if (gives && cupti_.register_timestamp_callback(&now) == CUPTI_SUCCESS) {
    gave_clock_ = true;
    return;
  }
  clock_ = DeviceClock(TickScale::measure().ns_per_tick());
  read_clock();
}

// A client before us may have given it one, for good, of whatever unit: then ours is no worse.
bool CuptiActivity::has_own_clock() const noexcept {
  constexpr std::uint64_t kNearNs = 1'000'000'000;
  std::uint64_t told_ns = 0;
  if (cupti_.get_timestamp(&told_ns) != CUPTI_SUCCESS) return true;
  const std::uint64_t now_ns = realtime_ns();
  return std::max(told_ns, now_ns) - std::min(told_ns, now_ns) < kNearNs;
}

// Both clocks as close together as can be: of a few tries, the shortest.
void CuptiActivity::read_clock() {
  if (clock_.is_ours()) return;
  constexpr int kTries = 3;
  std::uint64_t shortest = ~std::uint64_t{0};
  std::uint64_t device_ns = 0;
  std::uint64_t ticks = 0;
  for (int i = 0; i < kTries; ++i) {
    std::uint64_t cupti_ns = 0;
    const std::uint64_t before = clock_ticks();
    if (cupti_.get_timestamp(&cupti_ns) != CUPTI_SUCCESS) return;
    const std::uint64_t length = clock_ticks() - before;
    if (length >= shortest) continue;
    shortest = length;
    device_ns = cupti_ns;
    ticks = before + length / 2;
  }
  if (clock_.add_reading(device_ns, ticks)) ++health_.clock_set;
}

// A record that CUPTI cannot read ends its buffer: the rest of that is lost.
template <typename Function>
void CuptiActivity::for_each(const std::vector<CuptiBuffers::Filled>& buffers,
                             const Function& function) {
  for (const CuptiBuffers::Filled& buffer : buffers) {
    CUpti_Activity* record = nullptr;
    CUptiResult result = CUPTI_SUCCESS;
    while ((result = cupti_.next_record(buffer.data, buffer.bytes, &record)) == CUPTI_SUCCESS)
      function(*record);
    if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) ++health_.buffers_lost;
  }
}

// The count starts again at each reading.
void CuptiActivity::count_dropped() {
  std::size_t dropped = 0;
  if (cupti_.dropped_records(nullptr, 0, &dropped) == CUPTI_SUCCESS) health_.dropped += dropped;
}

}  // namespace layertrace::cuda
