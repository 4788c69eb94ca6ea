#include "cupti/tool.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace simgpu::cupti {
namespace {

// The call that the thread is in, on both clocks.
struct Moment {
  std::uint64_t ns = 0;
  std::uint64_t client = 0;
  std::uint32_t correlation = 0;
};

// What is kept of a thread. Reached by one pointer: every launch wants it, several times.
struct OfThread {
  Moment moment;
  std::array<std::vector<std::uint64_t>, CUPTI_EXTERNAL_CORRELATION_KIND_SIZE> ids;
  std::uint32_t id = static_cast<std::uint32_t>(pthread_self());
  std::uint32_t system_id = static_cast<std::uint32_t>(gettid());
};
constinit thread_local OfThread* of_thread __attribute__((tls_model("initial-exec"))) = nullptr;

// Made by the thread's first call, and gone with it. A thread that still calls while it ends gets
// another, which nobody takes away.
OfThread& make_of_thread() {
  struct Owner {
    Owner() : made(std::make_unique<OfThread>()) { of_thread = made.get(); }
    ~Owner() {
      if (of_thread == made.get()) of_thread = nullptr;
    }
    Owner(const Owner&) = delete;  // the thread's pointer is to what it made
    Owner& operator=(const Owner&) = delete;
    std::unique_ptr<OfThread> made;
  };
  static thread_local const Owner owner;
  if (of_thread == nullptr) of_thread = new OfThread;
  return *of_thread;
}

OfThread& mine() { return of_thread != nullptr ? *of_thread : make_of_thread(); }

bool is_api(CUpti_ActivityKind kind) {
  return kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER;
}

std::size_t index_of(Api api) { return static_cast<std::size_t>(api); }

}  // namespace

Tool& Tool::instance() {
  static auto* tool = new Tool;
  return *tool;
}

Tool::Tool() {
  pthread_atfork(nullptr, nullptr, [] { Tool::instance().forget_parent(); });
  for (const FaultKind kind :
       {FaultKind::kEarly, FaultKind::kOverlap, FaultKind::kDuplicateCorrelation,
        FaultKind::kReversedTimestamps, FaultKind::kZeroTimestamps})
    spoils_ = spoils_ || Machine::instance().config().fault(kind).has_value();
  sets_clock_ = Machine::instance().config().fault(FaultKind::kClockSet).has_value();
  needs_kind_ = Machine::instance().config().fault(FaultKind::kNoSingleFunctions).has_value();
}

// In a forked child: who held a lock in the parent is not there.
void Tool::forget_parent() noexcept {
  delivery_.forget_parent();
  std::construct_at(&watch_mutex_);
  std::construct_at(&ends_lock_);
  std::construct_at(&mutex_);
  forget_process();
}

void Tool::enable(CUpti_ActivityKind kind, bool on) {
  const bool was_on = enabled_[static_cast<std::size_t>(kind)].exchange(on);
  if (is_api(kind)) {
    const Api api = kind == CUPTI_ACTIVITY_KIND_RUNTIME ? Api::kRuntime : Api::kDriver;
    for (auto& function : recorded_[index_of(api)]) function = on;
  }
  update_watch();
  if (!on || was_on) return;
  Machine& machine = Machine::instance();
  for (int device = 0; device < machine.device_count(); ++device) {
    if (kind == CUPTI_ACTIVITY_KIND_DEVICE) delivery_.add(device_record(device));
    if (kind == CUPTI_ACTIVITY_KIND_NAME) delivery_.add(name_record(device));
    if (kind == CUPTI_ACTIVITY_KIND_CONTEXT && machine.device(device).has_context)
      delivery_.add(context_record(device));
  }
}

void Tool::enable_function(Api api, std::uint32_t id, bool on) {
  if (id < kFunctions) recorded_[index_of(api)][id] = on;
  update_watch(api, id);
}

void Tool::update_watch() {
  const std::lock_guard lock(watch_mutex_);
  for (const Api api : {Api::kRuntime, Api::kDriver}) {
    for (std::uint32_t id = 0; id < kFunctions; ++id) {
      if (const bool wanted = wants(api, id); wanted != watches(api, id))
        watched_.set(api, id, wanted);
    }
  }
  observe();
}

void Tool::update_watch(Api api, std::uint32_t id) {
  const std::lock_guard lock(watch_mutex_);
  watched_.set(api, id, wants(api, id));
  observe();
}

void Tool::observe() {
  const bool wanted =
      subscription_.is_active() || !watched_.empty() ||
      std::any_of(enabled_.begin(), enabled_.end(), [](const auto& each) { return each.load(); });
  Machine::instance().set_observer(wanted ? this : nullptr);
}

void Tool::set_timestamp_callback(CUpti_TimestampCallbackFunc callback) {
  timestamps_.set_callback(callback);
  {
    const std::lock_guard lock(ends_lock_);
    stream_ends_.clear();  // they are in another unit
  }
  const std::lock_guard lock(mutex_);
  told_ends_.clear();
}

void Tool::push(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  mine().ids[static_cast<std::size_t>(kind)].push_back(id);
}

bool Tool::pop(CUpti_ExternalCorrelationKind kind, std::uint64_t* id) {
  std::vector<std::uint64_t>& stack = mine().ids[static_cast<std::size_t>(kind)];
  if (stack.empty()) return false;
  if (id != nullptr) *id = stack.back();
  stack.pop_back();
  return true;
}

void Tool::flush(bool forced) {
  timestamps_.refine();
  const std::uint64_t start = timestamps_.now();
  delivery_.flush(forced);
  if (enabled(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
    delivery_.add(overhead_record(CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH,
                                  {start, timestamps_.now()}, thread_id()));
  }
}

// As the client wants it: by default what POSIX calls the thread, of which there is half.
std::uint32_t Tool::thread_id() const {
  const OfThread& thread = mine();
  return has_system_ids_.load(std::memory_order_relaxed) ? thread.system_id : thread.id;
}

bool Tool::records(Api api, std::uint32_t id) const noexcept {
  if (id >= kFunctions || !recorded_[index_of(api)][id].load(std::memory_order_relaxed))
    return false;
  return !needs_kind_ ||
         enabled(api == Api::kRuntime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER);
}

// Both clocks, close together: where the thread lost the processor between, once more. Gives the
// client's.
std::uint64_t Tool::read_clocks(std::uint32_t correlation) const {
  constexpr int kAttempts = 3;
  const DeviceClock& clock = Machine::instance().clock();
  Moment& moment = mine().moment;
  std::uint64_t client = timestamps_.now();
  for (int i = 0; i < kAttempts; ++i) {
    moment = {clock.now(), client, correlation};
    client = timestamps_.now();
    if (timestamps_.are_close(moment.client, client)) break;
  }
  return moment.client;
}

// Records of other kinds than the call's own are placed relative to the call's time.
bool Tool::tells_of_calls() const noexcept {
  return enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) || enabled(CUPTI_ACTIVITY_KIND_CUDA_EVENT) ||
         enabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) || enabled(CUPTI_ACTIVITY_KIND_STREAM);
}

bool Tool::wants(Api api, std::uint32_t id) const noexcept {
  return records(api, id) || subscription_.watches(api, id) || tells_of_calls();
}

void Tool::on_enter(ApiCall& call) {
  if (records(call.api, call.id) || tells_of_calls())
    call.entered_at = read_clocks(call.correlation);
  subscription_.on_enter(call);
}

void Tool::on_leave(ApiCall& call) {
  subscription_.on_leave(call);
  if (!records(call.api, call.id)) return;
  const OfThread& thread = mine();
  const bool tells_ids = enabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  const CUpti_ActivityAPI record =
      api_record(call, {call.entered_at, timestamps_.now()}, thread_id());
  delivery_.add([&](RecordQueue& queue) {
    // The innermost of each kind.
    for (std::size_t kind = 0; tells_ids && kind < thread.ids.size(); ++kind) {
      if (thread.ids[kind].empty()) continue;
      queue.push_host(correlation_record(static_cast<CUpti_ExternalCorrelationKind>(kind),
                                         thread.ids[kind].back(), call.correlation));
    }
    queue.push_host(record);
  });
}

Span Tool::span_of(const Slot& slot) const {
  const Moment& moment = mine().moment;
  return {timestamps_.at(slot.start_ns, moment.ns, moment.client),
          timestamps_.at(slot.end_ns, moment.ns, moment.client)};
}

// Two clocks are never read at quite the same time; the order in a stream is kept all the same.
Span Tool::in_stream(const Activity& activity) {
  // Where the call had begun before anybody watched, it was not stamped.
  if (mine().moment.correlation != activity.correlation) read_clocks(activity.correlation);
  Span span = span_of(activity.slot);
  if (activity.node != 0) return span;  // nodes of a graph may run beside each other
  const std::uint64_t stream =
      std::uint64_t{context_id(activity.device)} << 32 | activity.stream_id;
  const std::lock_guard lock(ends_lock_);
  std::uint64_t& end = stream_ends_[stream];
  const bool clock_was_set = sets_clock_ && end > span.start + Timestamps::kSetBackNs / 2;
  if (span.start < end && !clock_was_set) span = {end, end + (span.end - span.start)};
  end = span.end;
  return span;
}

// As a device does that tells its times wrongly: faults that were asked for.
void Tool::spoil(Record& record) {
  TimeFields fields{};
  if (!spoils_ || !time_fields(record.bytes, &fields)) return;
  Machine& machine = Machine::instance();
  // Asked last: it counts what it grants.
  const auto is_nth = [&](FaultKind kind) {
    const bool comes = machine.config().fault_at(kind, device_records_);
    if (comes) machine.count_fault(kind);
    return comes;
  };
  const std::lock_guard lock(mutex_);
  ++device_records_;
  std::uint64_t& last_end = told_ends_[record.head.order];
  if (last_end != 0 && *fields.start >= last_end && is_nth(FaultKind::kOverlap))
    *fields.start = last_end - (*fields.end - *fields.start) / 2 - 1;
  last_end = *fields.end;
  // The record is made within the call that asked for it, when that has been stamped.
  constexpr std::uint64_t kBefore = 1000;  // of the client's units
  if (is_nth(FaultKind::kEarly)) *fields.start = mine().moment.client - kBefore;
  if (last_correlation_ != 0 && is_nth(FaultKind::kDuplicateCorrelation))
    *fields.correlation = last_correlation_;
  last_correlation_ = *fields.correlation;
  if (is_nth(FaultKind::kReversedTimestamps)) std::swap(*fields.start, *fields.end);
  if (is_nth(FaultKind::kZeroTimestamps)) *fields.start = *fields.end = 0;
}

void Tool::on_kernel(const Activity& kernel, CUpti_ActivityKind kind) {
  const KernelNote note(kernel, in_stream(kernel), kind);
  const std::uint64_t ready_ns = kernel.slot.end_ns;
  if (spoils_) {
    Record record = kernel_record(note, ready_ns);
    spoil(record);
    delivery_.add(record);
  } else {
    delivery_.add([&](RecordQueue& queue) {
      queue.push(note, ready_ns, order_of(note.device, note.stream_id));
    });
  }
}

void Tool::on_activity(const Activity& activity) {
  const auto deliver = [&](Record record) {
    spoil(record);
    delivery_.add(record);
  };
  // A graph that is told as a whole is not told node by node.
  if (activity.node != 0 && enabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) return;
  switch (activity.kind) {
    case Activity::Kind::kKernel:
      if (enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) {
        on_kernel(activity, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
      } else if (enabled(CUPTI_ACTIVITY_KIND_KERNEL)) {
        on_kernel(activity, CUPTI_ACTIVITY_KIND_KERNEL);
      }
      break;
    case Activity::Kind::kCopy:
      // A copy between devices has a record of its own for who asks for it.
      if (activity.path == CopyPath::kPeer && enabled(CUPTI_ACTIVITY_KIND_MEMCPY2)) {
        deliver(peer_copy_record(activity, in_stream(activity)));
      } else if (enabled(CUPTI_ACTIVITY_KIND_MEMCPY)) {
        deliver(copy_record(activity, in_stream(activity)));
      }
      break;
    case Activity::Kind::kFill:
      if (enabled(CUPTI_ACTIVITY_KIND_MEMSET)) deliver(fill_record(activity, in_stream(activity)));
      break;
  }
}

void Tool::on_synchronization(const Synchronization& synchronization) {
  subscription_.on_synchronization(synchronization);
  if (!enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) return;
  const Moment& moment = mine().moment;
  const Span span{timestamps_.at(synchronization.start_ns, moment.ns, moment.client),
                  timestamps_.now()};
  delivery_.add(synchronization_record(synchronization, span));
}

void Tool::on_event(const EventMark& mark) {
  if (!enabled(CUPTI_ACTIVITY_KIND_CUDA_EVENT)) return;
  const Moment& moment = mine().moment;
  const std::uint64_t time =
      event_times_ ? timestamps_.at(mark.time_ns, moment.ns, moment.client) : 0;
  delivery_.add(event_record(mark, time));
}

void Tool::on_graph_run(const GraphRun& run) {
  if (!enabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) return;
  delivery_.add(graph_record(run, span_of(run.slot)));
}

void Tool::on_resource(const ResourceChange& change) {
  subscription_.on_resource(change);
  if (change.kind == ResourceChange::Kind::kContextCreated && enabled(CUPTI_ACTIVITY_KIND_CONTEXT))
    delivery_.add(context_record(change.device));
  if (change.kind == ResourceChange::Kind::kStreamCreated && enabled(CUPTI_ACTIVITY_KIND_STREAM)) {
    delivery_.add(stream_record(*change.stream, mine().moment.correlation));
  }
}

}  // namespace simgpu::cupti
