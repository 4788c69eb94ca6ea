// The simulated machine: its devices, its clock, its memory, and who wants to be told. One for the
// process; the runtime, the driver, cuBLAS and CUPTI are faces of it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/config.h"
#include "core/cost_model.h"
#include "core/device_clock.h"
#include "core/graph.h"
#include "core/host_functions.h"
#include "core/memory.h"
#include "core/observer.h"
#include "core/timeline.h"

namespace simgpu {

struct Capture;

// A stream as the program knows it.
struct Stream {
  int device = 0;
  Timeline::StreamId queue = Timeline::kLegacyStream;
  std::uint32_t id = 0;  // as records tell it
  int priority = 0;
  unsigned flags = 0;
  std::atomic<Capture*> capture{nullptr};   // what goes into it is kept for a graph
  std::vector<HostFunctions::Due> awaited;  // other streams' functions that it waits for
};

struct Event {
  int device = 0;
  unsigned flags = 0;
  std::uint32_t id = 0;
  std::atomic<std::uint64_t> time_ns{0};    // when it happens; 0: never recorded
  std::atomic<std::uint32_t> record_id{0};  // of the call that recorded it last
  // Recorded while its stream was captured: the capture, and what came before it.
  std::atomic<std::uint64_t> capture_id{0};
  std::vector<Node*> captured;
  std::vector<HostFunctions::Due> dues;  // what its stream has to have called before
};

// What is known of a kernel. It lives as long as the process.
struct Kernel {
  const char* name = "";
  double weight = 1;
};

// As CUDA numbers it in records.
inline constexpr std::uint32_t kLegacyStreamId = 7;

class Device {
 public:
  explicit Device(int device_number);
  Timeline timeline;
  Stream legacy_stream;  // the default stream of programs that say nothing
  const int number;
  std::atomic<bool> has_context{false};
};

class Machine {
 public:
  // Made on first use. A set-up that cannot be is told on stderr and ends the process: a program
  // that asks for what there is not must not run as if it had it.
  static Machine& instance();

  explicit Machine(Config config);

  const Config& config() const noexcept { return config_; }
  // What goes wrong on purpose is counted, so that a test can hold a tool's own count against it.
  std::uint64_t launches() const noexcept { return launches_.load(std::memory_order_relaxed); }
  void count_fault(FaultKind kind) noexcept {
    faults_[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t faults(FaultKind kind) const noexcept {
    return faults_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }
  const DeviceProfile& profile() const noexcept { return *config_.profile; }
  DeviceClock& clock() noexcept { return clock_; }
  Memory& memory() noexcept { return memory_; }
  HostFunctions& host_functions() noexcept { return host_functions_; }
  // Waits until it is that time, and all that streams were to call by then has been called: all of
  // them, or those that what is waited for depends on.
  void wait_until(std::uint64_t ns);
  void wait_until(std::uint64_t ns, const std::vector<HostFunctions::Due>& dues);
  bool reached(std::uint64_t ns, const std::vector<HostFunctions::Due>& dues);
  // What depends on what: a stream up to a time, an event of it, a stream that waits for the event.
  std::vector<HostFunctions::Due> dues_of(const Stream& stream, std::uint64_t by_ns) const;
  std::vector<HostFunctions::Due> dues_of(const Event& event) const;
  void set_dues(Event& event, const Stream& stream, std::uint64_t time_ns);
  void add_dues(Stream& stream, const Event& event);
  void call_later(const Stream& stream, std::uint64_t due_ns, std::function<void()> function);
  // Whether the stream has yet to call a function of the program: then what is put into it takes
  // effect behind that, else at once.
  bool has_to_call(const Stream& stream) {
    constexpr std::uint64_t kEver = ~std::uint64_t{0};
    return !host_functions_.none() && !host_functions_.settled(dues_of(stream, kEver));
  }
  // Does what changes memory in the order of the stream, at that time.
  template <typename Effect>
  void apply(const Stream& stream, std::uint64_t at_ns, const Effect& effect) {
    if (has_to_call(stream)) [[unlikely]] {
      call_later(stream, at_ns, effect);
    } else {
      effect();
    }
  }

  int device_count() const noexcept { return static_cast<int>(devices_.size()); }
  Device& device(int number) noexcept { return *devices_[static_cast<std::size_t>(number)]; }
  std::uint32_t new_stream_id() noexcept { return next_stream_id_.fetch_add(1); }
  std::uint32_t new_correlation() noexcept { return next_correlation_.fetch_add(1); }
  std::uint32_t new_event_id() noexcept { return next_event_id_.fetch_add(1); }
  std::uint32_t new_graph_id() noexcept { return next_graph_id_.fetch_add(1); }
  std::uint64_t new_node_id() noexcept { return next_node_id_.fetch_add(1); }

  // What can be put into a stream, with what it costs there.
  Task kernel(const Kernel& kernel, KernelShape shape) const;
  Task copy(CopyPath path, std::uint64_t bytes) const;
  Task fill(int value, std::uint64_t bytes) const;

  // Runs a task: it gets its place in time, and the observer is told.
  Slot run(const Stream& stream, const Task& task, std::uint32_t correlation);
  // Likewise for all of a graph, whose nodes wait for each other and the first for the stream.
  Slot run(const Stream& stream, GraphExec& exec, std::uint32_t correlation);

  // Adds a node to a graph, copies one, and makes what can be launched from one (nullptr: its nodes
  // wait for each other).
  Node& add_node(Graph& graph, std::unique_ptr<Node> node, int device);
  std::unique_ptr<Graph> clone(const Graph& graph, int device);
  std::unique_ptr<GraphExec> instantiate(const Graph& graph, int device);

  // Kernels' names, by the address that a program launches them with.
  void add_kernel(const void* function, const char* name);
  const Kernel* find_kernel(const void* function) const;
  // The one of that name, made known if it is not.
  const Kernel& kernel_named(std::string_view name);

  // The device is used: its context is there from the first time on.
  void enter_context(int device_number) {
    if (!device(device_number).has_context.load(std::memory_order_relaxed)) [[unlikely]]
      create_context(device_number);
  }

  // At most one; nullptr for none.
  void set_observer(Observer* observer) noexcept { observer_.store(observer); }
  Observer* observer() const noexcept { return observer_.load(std::memory_order_acquire); }
  void tell(const ResourceChange& change) const {
    if (Observer* told = observer()) told->on_resource(change);
  }

  // A forked child has none of the machine's threads, and maybe its locks: nothing works there.
  bool forked() const noexcept { return forked_.load(std::memory_order_relaxed); }

  // The device was lost (a fault that was asked for): nothing works from then on.
  bool lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  // Counts a launch, or an allocation, for the faults that come with one; false: it fails.
  bool count_launch() noexcept;
  bool count_allocation() noexcept;

 private:
  void create_context(int device_number);

  const Config config_;
  DeviceClock clock_;
  Memory memory_;
  HostFunctions host_functions_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::atomic<std::uint32_t> next_stream_id_{16};
  std::atomic<std::uint32_t> next_correlation_{1};
  std::atomic<std::uint32_t> next_event_id_{1};
  std::atomic<std::uint32_t> next_graph_id_{1};
  std::atomic<std::uint64_t> next_node_id_{1};
  std::atomic<Observer*> observer_{nullptr};
  mutable std::shared_mutex kernels_mutex_;
  std::unordered_map<const void*, const Kernel*> kernels_;
  std::unordered_map<std::string, Kernel> names_;
  std::array<std::atomic<std::uint64_t>, kFaultKinds> faults_{};
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<bool> lost_{false};
  std::atomic<bool> forked_{false};
  mutable std::mutex dues_mutex_;
};

}  // namespace simgpu
