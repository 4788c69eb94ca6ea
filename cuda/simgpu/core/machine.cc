#include "core/machine.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace simgpu {
namespace {

// As CUDA numbers them: the legacy default stream is 7.
constexpr std::uint32_t kLegacyStreamId = 7;
constexpr std::uint32_t kPerThreadStreamId = 8;

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

Device::Device(int device_number)
    : legacy_stream{.device = device_number,
                    .queue = Timeline::kLegacyStream,
                    .id = kLegacyStreamId,
                    .priority = 0,
                    .flags = 0},
      per_thread_stream{.device = device_number,
                        .queue = timeline.add_stream(/*blocking=*/true),
                        .id = kPerThreadStreamId,
                        .priority = 0,
                        .flags = 0},
      number(device_number) {}

Machine& Machine::instance() {
  // Never destroyed: a program may call into the runtime while it exits.
  static auto* machine = new Machine(config_or_exit());
  return *machine;
}

Machine::Machine(Config config)
    : config_(std::move(config)),
      clock_(config_.virtual_clock),
      memory_(config_.devices, config_.memory_bytes),
      host_functions_(clock_) {
  for (int i = 0; i < config_.devices; ++i) devices_.push_back(std::make_unique<Device>(i));
}

void Machine::wait_until(std::uint64_t ns) {
  clock_.wait_until(ns);
  host_functions_.settle(ns);
}

bool Machine::reached(std::uint64_t ns) {
  return ns <= clock_.now() && host_functions_.settled(ns);
}

// Gives it its place in time, and tells of it.
Slot Machine::run(const Stream& stream, Activity& activity, std::uint64_t duration_ns,
                  Engine engine) {
  const std::uint64_t arrival_ns = clock_.now() + profile().launch_latency_ns;
  activity.device = stream.device;
  activity.stream_id = stream.id;
  activity.slot =
      device(stream.device).timeline.enqueue(stream.queue, arrival_ns, duration_ns, engine);
  if (Observer* observer = observer_.load(std::memory_order_acquire))
    observer->on_activity(activity);
  return activity.slot;
}

Slot Machine::run_kernel(const Stream& stream, Activity kernel, std::uint64_t duration_ns) {
  kernel.kind = Activity::Kind::kKernel;
  return run(stream, kernel, duration_ns, Engine::kCompute);
}

Slot Machine::run_copy(const Stream& stream, CopyPath path, std::uint64_t bytes,
                       std::uint32_t correlation) {
  Engine engine = Engine::kWithin;
  if (path == CopyPath::kToDevice) engine = Engine::kToDevice;
  if (path == CopyPath::kToHost) engine = Engine::kToHost;
  Activity copy;
  copy.kind = Activity::Kind::kCopy;
  copy.correlation = correlation;
  copy.bytes = bytes;
  copy.path = path;
  return run(stream, copy, copy_ns(profile(), path, bytes), engine);
}

Slot Machine::run_fill(const Stream& stream, int value, std::uint64_t bytes,
                       std::uint32_t correlation) {
  Activity fill;
  fill.kind = Activity::Kind::kFill;
  fill.correlation = correlation;
  fill.bytes = bytes;
  fill.value = value;
  return run(stream, fill, fill_ns(profile(), bytes), Engine::kCompute);
}

void Machine::add_kernel(const void* function, const char* name) {
  const std::lock_guard lock(kernels_mutex_);
  kernels_.insert_or_assign(function, name);
}

const char* Machine::kernel_name(const void* function) const {
  const std::lock_guard lock(kernels_mutex_);
  const auto found = kernels_.find(function);
  return found == kernels_.end() ? nullptr : found->second.c_str();
}

bool Machine::count_launch() noexcept {
  const std::uint64_t number = launches_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (const auto last = config_.fault(FaultKind::kDeviceLost); last && number > *last)
    lost_.store(true, std::memory_order_relaxed);
  return !lost();
}

bool Machine::count_allocation() noexcept {
  const std::uint64_t number = allocations_.fetch_add(1, std::memory_order_relaxed) + 1;
  return config_.fault(FaultKind::kAllocationFails) != number && !lost();
}

}  // namespace simgpu
