#include "core/machine.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <utility>

namespace simgpu {
namespace {

Config config_or_exit() {
  auto config = read_config([](const char* name) -> const char* { return std::getenv(name); });
  if (const auto* error = std::get_if<std::string>(&config)) {
    std::fprintf(stderr, "simgpu: %s\n", error->c_str());
    constexpr int kUsage = 2;
    _exit(kUsage);
  }
  return std::get<Config>(std::move(config));
}

}  // namespace

Device::Device(int device_number) : number(device_number) {
  legacy_stream.device = device_number;
  legacy_stream.id = kLegacyStreamId;
}

Machine& Machine::instance() {
  // Never destroyed: a program may call into the runtime while it exits.
  static auto* machine = [] {
    auto* made = new Machine(config_or_exit());
    pthread_atfork(nullptr, nullptr, [] { Machine::instance().forked_ = true; });
    return made;
  }();
  return *machine;
}

Machine::Machine(Config config)
    : config_(std::move(config)),
      clock_(config_.virtual_clock),
      memory_(config_.devices, config_.memory_bytes),
      host_functions_(clock_) {
  for (int i = 0; i < config_.devices; ++i) devices_.push_back(std::make_unique<Device>(i));
}

namespace {

std::uint64_t number_of(const Stream& stream) {
  return static_cast<std::uint64_t>(stream.device) << 32 | stream.id;
}

void merge(std::vector<HostFunctions::Due>& into, const HostFunctions::Due& due) {
  const auto same = std::find_if(into.begin(), into.end(), [&](const HostFunctions::Due& each) {
    return each.stream == due.stream;
  });
  if (same == into.end()) {
    into.push_back(due);
  } else {
    same->by_ns = std::max(same->by_ns, due.by_ns);
  }
}

}  // namespace

void Machine::wait_until(std::uint64_t ns) {
  clock_.wait_until(ns);
  host_functions_.settle({{HostFunctions::kEveryStream, ns}});
}

void Machine::wait_until(std::uint64_t ns, const std::vector<HostFunctions::Due>& dues) {
  clock_.wait_until(ns);
  host_functions_.settle(dues);
}

// The legacy stream and blocking ones wait for each other.
std::vector<HostFunctions::Due> Machine::dues_of(const Stream& stream, std::uint64_t by_ns) const {
  if (stream.queue == Timeline::kLegacyStream) return {{HostFunctions::kEveryStream, by_ns}};
  const std::lock_guard lock(dues_mutex_);
  std::vector<HostFunctions::Due> dues = stream.awaited;
  merge(dues, {number_of(stream), by_ns});
  if (stream.flags == 0)
    merge(dues, {static_cast<std::uint64_t>(stream.device) << 32 | kLegacyStreamId, by_ns});
  return dues;
}

std::vector<HostFunctions::Due> Machine::dues_of(const Event& event) const {
  const std::lock_guard lock(dues_mutex_);
  return event.dues;
}

void Machine::set_dues(Event& event, const Stream& stream, std::uint64_t time_ns) {
  std::vector<HostFunctions::Due> dues = dues_of(stream, time_ns);
  const std::lock_guard lock(dues_mutex_);
  event.dues = std::move(dues);
}

void Machine::add_dues(Stream& stream, const Event& event) {
  const std::lock_guard lock(dues_mutex_);
  for (const HostFunctions::Due& due : event.dues) merge(stream.awaited, due);
}

void Machine::call_later(const Stream& stream, std::uint64_t due_ns,
                         std::function<void()> function) {
  host_functions_.add(number_of(stream), due_ns, std::move(function));
}

bool Machine::reached(std::uint64_t ns, const std::vector<HostFunctions::Due>& dues) {
  return ns <= clock_.now() && host_functions_.settled(dues);
}

Task Machine::kernel(const Kernel& kernel, KernelShape shape) const {
  Task task;
  task.activity.kind = Activity::Kind::kKernel;
  task.activity.name = kernel.name;
  task.duration_ns = kernel_ns(profile(), kernel.weight, shape);
  return task;
}

Task Machine::copy(CopyPath path, std::uint64_t bytes) const {
  Task task;
  task.activity.kind = Activity::Kind::kCopy;
  task.activity.bytes = bytes;
  task.activity.path = path;
  task.duration_ns = copy_ns(profile(), path, bytes);
  task.engine = Engine::kWithin;
  if (path == CopyPath::kToDevice) task.engine = Engine::kToDevice;
  if (path == CopyPath::kToHost) task.engine = Engine::kToHost;
  return task;
}

Task Machine::fill(int value, std::uint64_t bytes) const {
  Task task;
  task.activity.kind = Activity::Kind::kFill;
  task.activity.bytes = bytes;
  task.activity.value = value;
  task.duration_ns = fill_ns(profile(), bytes);
  return task;
}

Slot Machine::run(const Stream& stream, const Task& task, std::uint32_t correlation) {
  const std::uint64_t arrival_ns = clock_.now() + profile().launch_latency_ns;
  const Slot slot = device(stream.device)
                        .timeline.enqueue(stream.queue, arrival_ns, task.duration_ns, task.engine);
  if (Observer* told = observer()) {
    Activity activity = task.activity;
    activity.device = stream.device;
    activity.stream_id = stream.id;
    activity.priority = stream.priority;
    activity.correlation = correlation;
    activity.slot = slot;
    told->on_activity(activity);
  }
  return slot;
}

Slot Machine::run(const Stream& stream, GraphExec& exec, std::uint32_t correlation) {
  std::vector<Timeline::Entry> entries;
  entries.reserve(exec.plan.size());
  for (const PlannedNode& planned : exec.plan) {
    const Task* task = planned.node != nullptr ? &planned.node->task : nullptr;
    entries.push_back({.duration_ns = task != nullptr ? task->duration_ns : 0,
                       .engine = task != nullptr ? task->engine : Engine::kCompute,
                       .after = planned.after,
                       .slot = {}});
    if (planned.node != nullptr && planned.node->kind == Node::Kind::kWaitEvent)
      entries.back().earliest_ns = planned.node->event->time_ns.load();
  }
  // One launch of a graph waits for the one before, on whichever stream that was.
  const std::uint64_t arrival_ns =
      std::max(clock_.now() + profile().launch_latency_ns, exec.busy_until_ns.load());
  const Slot whole = device(stream.device).timeline.enqueue(stream.queue, arrival_ns, entries);
  exec.busy_until_ns = whole.end_ns;
  Observer* told = observer();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Node* node = exec.plan[i].node;
    if (node == nullptr) continue;
    const Slot slot = entries[i].slot;
    if (node->kind == Node::Kind::kRecordEvent) {
      node->event->time_ns.store(slot.end_ns);
      node->event->record_id.store(correlation);
      set_dues(*node->event, stream, slot.end_ns);
      if (told != nullptr)
        told->on_event({stream.device, stream.id, node->event->id, correlation, slot.end_ns});
    } else if (node->kind == Node::Kind::kHost) {
      call_later(stream, slot.start_ns, node->effect);
      continue;
    }
    if (node->effect) apply(stream, slot.start_ns, node->effect);
    const bool is_activity = node->kind == Node::Kind::kKernel || node->kind == Node::Kind::kCopy ||
                             node->kind == Node::Kind::kFill;
    if (told == nullptr || !is_activity) continue;
    Activity activity = node->task.activity;
    activity.device = stream.device;
    activity.stream_id = stream.id;
    activity.priority = stream.priority;
    activity.correlation = correlation;
    activity.slot = slot;
    activity.graph = exec.id;
    activity.node = node->id;
    told->on_activity(activity);
  }
  if (told != nullptr) told->on_graph_run({stream.device, stream.id, correlation, exec.id, whole});
  return whole;
}

Node& Machine::add_node(Graph& graph, std::unique_ptr<Node> node, int device_number) {
  using Kind = ResourceChange::Kind;
  Node& added = *graph.nodes.emplace_back(std::move(node));
  added.id = new_node_id();
  tell({.kind = Kind::kNodeCreated, .device = device_number, .graph = &graph, .node = &added});
  for (const Node* each : added.after) {
    tell({.kind = Kind::kDependencyCreated,
          .device = device_number,
          .graph = &graph,
          .node = &added,
          .dependency = each});
  }
  return added;
}

std::unique_ptr<Graph> Machine::clone(const Graph& graph, int device_number) {
  using Kind = ResourceChange::Kind;
  auto copy = std::make_unique<Graph>();
  copy->id = new_graph_id();
  tell({.kind = Kind::kGraphCloned,
        .device = device_number,
        .graph = copy.get(),
        .original_graph = &graph});
  std::unordered_map<const Node*, Node*> copies;
  for (const auto& original : graph.nodes) {
    auto node = std::make_unique<Node>();
    node->kind = original->kind;
    node->id = new_node_id();
    node->task = original->task;
    node->effect = original->effect;
    node->event = original->event;
    node->chosen = original->chosen;
    for (const auto& body : original->bodies) node->bodies.push_back(clone(*body, device_number));
    copies[original.get()] = node.get();
    tell({.kind = Kind::kNodeCloned,
          .device = device_number,
          .graph = copy.get(),
          .original_graph = &graph,
          .node = node.get(),
          .original_node = original.get()});
    copy->nodes.push_back(std::move(node));
  }
  for (const auto& original : graph.nodes) {
    for (const Node* each : original->after) copies[original.get()]->after.push_back(copies[each]);
  }
  for (UserObject* object : graph.user_objects) {
    object->retain(1);
    copy->user_objects.push_back(object);
  }
  return copy;
}

std::unique_ptr<GraphExec> Machine::instantiate(const Graph& graph, int device_number) {
  using Kind = ResourceChange::Kind;
  auto exec = std::make_unique<GraphExec>();
  exec->id = new_graph_id();
  tell({.kind = Kind::kExecStarts, .device = device_number, .graph = &graph, .exec = exec.get()});
  exec->graph = clone(graph, device_number);
  exec->plan = plan_of(*exec->graph);
  if (exec->plan.empty()) return nullptr;
  tell({.kind = Kind::kExecCreated, .device = device_number, .graph = &graph, .exec = exec.get()});
  return exec;
}

void Machine::create_context(int device_number) {
  if (device(device_number).has_context.exchange(true)) return;
  tell({.kind = ResourceChange::Kind::kContextCreated, .device = device_number});
}

void Machine::add_kernel(const void* function, const char* name) {
  const Kernel& kernel = kernel_named(name);
  const std::lock_guard lock(kernels_mutex_);
  kernels_.insert_or_assign(function, &kernel);
}

const Kernel* Machine::find_kernel(const void* function) const {
  const std::shared_lock lock(kernels_mutex_);
  const auto found = kernels_.find(function);
  return found == kernels_.end() ? nullptr : found->second;
}

const Kernel& Machine::kernel_named(std::string_view name) {
  const std::lock_guard lock(kernels_mutex_);
  const auto [found, fresh] = names_.try_emplace(std::string(name));
  if (fresh) found->second = {found->first.c_str(), kernel_weight(name)};
  return found->second;
}

bool Machine::count_launch() noexcept {
  const std::uint64_t number = launches_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (const auto last = config_.fault(FaultKind::kDeviceLost); last && number > *last) {
    count_fault(FaultKind::kDeviceLost);
    lost_.store(true, std::memory_order_relaxed);
  }
  return !lost();
}

bool Machine::count_allocation() noexcept {
  const std::uint64_t number = allocations_.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool fails = config_.fault(FaultKind::kAllocationFails) == number;
  if (fails) count_fault(FaultKind::kAllocationFails);
  return !fails && !lost();
}

}  // namespace simgpu
