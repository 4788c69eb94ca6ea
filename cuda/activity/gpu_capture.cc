// What a session gets of the vendor's side: CUPTI's records, events, ranges, and what is in the
// way.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "activity/cuda_environment.h"
#include "activity/cuda_runtime.h"
#include "activity/cupti_activity.h"
#include "activity/event_timer.h"
#include "activity/nvtx_ranges.h"
#include "base/clock.h"
#include "base/simulation.h"
#include "capture/device.h"

namespace layertrace {
namespace cuda {
namespace {

// By the driver, which CUDA has loaded.
std::string device_names() {
  using GetCount = int (*)(int*);
  using GetName = int (*)(char*, int, int);
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  const auto count_of =
      driver != nullptr ? reinterpret_cast<GetCount>(dlsym(driver, "cuDeviceGetCount")) : nullptr;
  const auto name_of =
      driver != nullptr ? reinterpret_cast<GetName>(dlsym(driver, "cuDeviceGetName")) : nullptr;
  int count = 0;
  std::string names;
  if (count_of == nullptr || name_of == nullptr || count_of(&count) != 0) return "GPU";
  std::string first;
  int same = 0;
  for (int i = 0; i < count; ++i) {
    std::array<char, 256> name{};
    if (name_of(name.data(), static_cast<int>(name.size()) - 1, i) != 0) continue;
    if (i == 0) first = name.data();
    if (first == name.data()) {
      ++same;
    } else {
      names += std::string(", ") + name.data();
    }
  }
  if (same == 0) return "GPU";
  return (same > 1 ? std::to_string(same) + " × " : "") + first + names;
}

// The devices that the program uses: none is started for our sake.
bool has_context(int device) {
  using GetState = int (*)(int, unsigned*, int*);
  static const auto kGetState = [] {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return driver != nullptr
               ? reinterpret_cast<GetState>(dlsym(driver, "cuDevicePrimaryCtxGetState"))
               : nullptr;
  }();
  unsigned flags = 0;
  int active = 0;
  return kGetState != nullptr && kGetState(device, &flags, &active) == 0 && active != 0;
}

// −1 for none.
int first_in_use() {
  constexpr int kMost = 64;  // those that there are not are in use by nobody
  for (int i = 0; i < kMost; ++i) {
    if (has_context(i)) return i;
  }
  return -1;
}

constexpr const char* kEventsInstead =
    "the GPU's time is taken by CUDA events instead: that of layers, without single kernels";

// Either part may be missing, not both.
class GpuCapture final : public DeviceCapture {
 public:
  GpuCapture(const CudaRuntime* runtime, std::unique_ptr<CuptiActivity> cupti,
             std::shared_ptr<EventTimer> timer)
      : runtime_(runtime), cupti_(std::move(cupti)), timer_(std::move(timer)) {
    if (cupti_ != nullptr && timer_ != nullptr)
      timer_->name_streams([this](cudaStream_t stream) { return cupti_->stream_id(stream); });
  }
  ~GpuCapture() override { close(); }

  Result<void> enable() noexcept override {
    if (cupti_ == nullptr) return {};
    auto enabled = cupti_->enable();
    if (enabled) {
      has_recorded_ = true;
    } else if (timer_ != nullptr) {
      try {
        Error error = enabled.error();
        error.remedy += std::string(error.remedy.empty() ? "" : ". ") + kEventsInstead;
        return error;
      } catch (...) {  // no memory for the words
        return enabled;
      }
    }
    return enabled;
  }
  void disable() noexcept override {
    if (cupti_ != nullptr) cupti_->disable();
  }
  void close() noexcept override {
    if (std::exchange(closed_, true)) return;
    if (cupti_ != nullptr) cupti_->close();
    if (timer_ != nullptr) {
      on_own_thread([this] { timer_->close(); });
    }
  }

  bool takes_scopes() const noexcept override { return cupti_ != nullptr; }
  void push(std::uint64_t frame) noexcept override { cupti_->push(frame); }
  void pop(std::uint64_t outer) noexcept override { cupti_->pop(outer); }

  void drain(DeviceConsumer& consumer, bool all) override {
    if (all) {
      on_own_thread([&] {
        synchronize();
        disable();  // what others ask for from now on is not ours, and would keep a buffer
        if (cupti_ != nullptr) cupti_->drain(consumer, true);
        if (timer_ != nullptr) timer_->drain(consumer, true);
      });
      return;
    }
    const bool calls_runtime = runtime_ != nullptr && may_call_runtime();
    if (cupti_ != nullptr) cupti_->drain(consumer, false);
    if (timer_ != nullptr && calls_runtime) timer_->drain(consumer, false);
  }

  void begin_writer() noexcept override { writer_ = std::this_thread::get_id(); }

  bool is_in_use() const noexcept override { return first_in_use() >= 0; }

  GpuHealth health() const override {
    // What was used, which is not always what was asked for: CUPTI may refuse at any window.
    GpuHealth health = has_recorded_ ? cupti_->health() : GpuHealth{};
    if (timer_ != nullptr) timer_->add_to(health);
    if (has_recorded_) health.timing = timer_ == nullptr ? "cupti" : "both";
    if (!has_recorded_ && timer_ != nullptr) health.timing = "events";
    return health;
  }
  std::string name() const override { return device_names(); }

 private:
  // On the writer's thread alone: a program's own keeps its device and its mode of capture. A call
  // of the runtime makes a context where there is none: until the program has one, none is made.
  // And each moves a simulated device's virtual clock, which is the program's: the writer, who
  // comes when the host has time, would make two runs differ.
  bool may_call_runtime() {
    if (std::this_thread::get_id() != writer_ || simulation().virtual_clock != nullptr)
      return false;
    if (!knows_writer_) knows_writer_ = stay_out_of_captures();
    return knows_writer_;
  }

  // Beginning with a device that the program uses: the first call makes a context on the thread's.
  bool stay_out_of_captures() const {
    const int device = first_in_use();
    if (device < 0 || runtime_->set_device(device) != cudaSuccess) return false;
    runtime_->stay_out_of_captures();
    return true;
  }

  // The program's own thread keeps its device.
  template <typename Function>
  void on_own_thread(const Function& function) noexcept {
    const auto run = [&]() noexcept {
      try {
        function();
      } catch (...) {  // no memory: what came so far was handed on
      }
    };
    try {
      std::thread thread([&] {
        if (cupti_ != nullptr) cupti_->leave_out_this_thread();
        if (runtime_ != nullptr) stay_out_of_captures();
        run();
      });
      thread.join();
    } catch (...) {  // no thread to be had, or no memory for one
      on_this_thread(run);
    }
  }

  // On the program's, which is left with the device and the mode of capture that it had.
  template <typename Function>
  void on_this_thread(const Function& function) noexcept {
    if (runtime_ == nullptr) return function();
    int device = 0;
    const bool knows_device = runtime_->get_device(&device) == cudaSuccess;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    runtime_->exchange_capture_mode(&mode);
    function();
    runtime_->exchange_capture_mode(&mode);
    int current = device;
    // Not where it is the same: that would make a context on a device without one.
    if (knows_device && runtime_->get_device(&current) == cudaSuccess && current != device)
      runtime_->set_device(device);
  }

  // Lets the devices finish what they were asked for, at the end of a session: a record of what
  // still runs would have no end. On a thread of our own, whose device may change.
  void synchronize() const {
    int count = 0;
    if (runtime_ == nullptr || runtime_->get_device_count(&count) != cudaSuccess) return;
    for (int i = 0; i < count; ++i) {
      if (!has_context(i) || runtime_->set_device(i) != cudaSuccess) continue;
      if (runtime_->synchronize() != cudaSuccess) runtime_->get_last_error();
    }
  }

  const CudaRuntime* const runtime_;
  const std::unique_ptr<CuptiActivity> cupti_;
  const std::shared_ptr<EventTimer> timer_;
  std::thread::id writer_;
  bool knows_writer_ = false;
  std::atomic<bool> has_recorded_{false};  // CUPTI, in some window
  bool closed_ = false;
};

// Both kinds of marks.
class TwoMarks final : public LayerMarks {
 public:
  TwoMarks(std::shared_ptr<LayerMarks> first, std::shared_ptr<LayerMarks> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  void begin_layer(LayerId layer, Phase phase, std::uint64_t frame) noexcept override {
    first_->begin_layer(layer, phase, frame);
    second_->begin_layer(layer, phase, frame);
  }
  void begin_region(NameId name, Phase phase) noexcept override {
    first_->begin_region(name, phase);
    second_->begin_region(name, phase);
  }
  void end() noexcept override {
    second_->end();
    first_->end();
  }

 private:
  const std::shared_ptr<LayerMarks> first_;
  const std::shared_ptr<LayerMarks> second_;
};

std::shared_ptr<LayerMarks> join(std::shared_ptr<LayerMarks> first,
                                 std::shared_ptr<LayerMarks> second) {
  if (first == nullptr) return second;
  if (second == nullptr) return first;
  return std::make_shared<TwoMarks>(std::move(first), std::move(second));
}

Result<std::unique_ptr<CuptiActivity>> start_cupti() {
  const auto& library = CuptiLibrary::load();
  if (!library) return library.error();
  auto activity = std::make_unique<CuptiActivity>(*library);
  if (auto started = activity->start(); !started) return started.error();
  return activity;
}

}  // namespace
}  // namespace cuda

Result<DeviceParts> make_device_parts(const DeviceRequest& request) {
  DeviceParts parts;
  std::shared_ptr<LayerMarks> ranges;
  if (request.nvtx) ranges = cuda::NvtxRanges::make(*request.definitions);
  const cuda::CudaRuntime* runtime = cuda::CudaRuntime::load();
  if (const auto other = cuda::other_profiler()) {
    const Error error{
        "cannot record what the GPU does",
        other->name + " is attached to this process (" + other->sign + ")",
        "It is shown layers as NVTX ranges. To record with layertrace, run the program "
        "without it"};
    if (request.require_gpu) return error;
    parts.notes.push_back(error.message());
    parts.marks = std::move(ranges);
    return parts;
  }

  std::unique_ptr<cuda::CuptiActivity> cupti;
  Timing timing = request.timing;
  if (timing != Timing::kEvents) {
    auto started = cuda::start_cupti();
    if (!started && request.require_gpu) return started.error();
    if (started) {
      cupti = std::move(*started);
    } else {
      parts.notes.push_back(started.error().message());
      timing = Timing::kEvents;
    }
  }
  std::shared_ptr<cuda::EventTimer> timer;
  if (timing != Timing::kCupti && runtime != nullptr && request.current_stream != nullptr) {
    timer = std::make_shared<cuda::EventTimer>(*runtime, request.current_stream,
                                               TickScale::measure().ns_per_tick());
  }
  if (timing != Timing::kCupti) {
    if (timer == nullptr) {
      const Error error{"cannot time layers by CUDA events", "this process has no CUDA runtime",
                        "Use a torch that is built for CUDA"};
      if (request.require_gpu) return error;
      parts.notes.push_back(error.message());
    } else if (timing != request.timing) {
      parts.notes.emplace_back(cuda::kEventsInstead);
    }
  }
  parts.ranges = ranges;
  parts.marks = cuda::join(std::move(ranges), timer);
  if (cupti != nullptr || timer != nullptr)
    parts.capture = std::make_shared<cuda::GpuCapture>(runtime, std::move(cupti), std::move(timer));
  return parts;
}

std::shared_ptr<LayerMarks> make_range_marks(const Definitions& definitions) {
  return cuda::NvtxRanges::make(definitions);
}

}  // namespace layertrace
