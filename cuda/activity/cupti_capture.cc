// The DeviceCapture that CUPTI fills.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "activity/cupti_library.h"
#include "activity/cupti_records.h"
#include "base/clock.h"
#include "capture/device.h"

namespace layertrace::cuda {
namespace {

// Kernels as they overlap: the kind without "concurrent" would make them wait for each other.
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                         CUPTI_ACTIVITY_KIND_RUNTIME,
                                         CUPTI_ACTIVITY_KIND_DRIVER,
                                         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET};
// Kineto takes CUSTOM0 and CUSTOM1.
constexpr auto kTagKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kBufferAlignment = 8;
constexpr std::size_t kMostBuffers = 64;

// CUPTI's buffers: a few that go round. It takes them from us on threads of the program or of its
// own, and gives them back filled.
class Buffers {
 public:
  struct Filled {
    std::uint8_t* data;
    std::size_t bytes;
  };

  static Buffers& instance() {
    static auto* buffers = new Buffers;  // never destroyed: CUPTI may hand one back at the very end
    return *buffers;
  }

  std::uint8_t* take() noexcept {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::uint8_t* buffer = free_.back();
      free_.pop_back();
      ++out_;
      return buffer;
    }
    if (made_ < kMostBuffers) {
      if (void* memory = std::aligned_alloc(kBufferAlignment, kBufferBytes)) {
        ++made_;
        ++out_;
        return static_cast<std::uint8_t*>(memory);
      }
    }
    ++refused_;
    return nullptr;
  }

  void give_back(std::uint8_t* data, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    if (data == nullptr) {
      ++lost_;
      return;
    }
    --out_;
    try {
      if (bytes != 0 && wanted_) {
        filled_.push_back({data, bytes});
      } else {
        free_.push_back(data);
      }
    } catch (...) {  // no memory for the entry
      ++lost_;
    }
    arrived_.notify_all();
  }

  std::vector<Filled> take_filled() {
    const std::lock_guard lock(mutex_);
    return std::exchange(filled_, {});
  }

  void reuse(const std::vector<Filled>& buffers) {
    const std::lock_guard lock(mutex_);
    for (const Filled& buffer : buffers) free_.push_back(buffer.data);
  }

  // What comes while nobody wants it goes back unread.
  void want(bool wanted) noexcept {
    const std::lock_guard lock(mutex_);
    wanted_ = wanted;
    if (wanted) return;
    for (const Filled& buffer : filled_) std::free(buffer.data);
    for (std::uint8_t* buffer : free_) std::free(buffer);
    made_ -= filled_.size() + free_.size();
    filled_.clear();
    free_.clear();
  }

  // Waits until CUPTI holds no buffer, for so long at most.
  void wait_for_all(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, longest, [this] { return out_ == 0; });
  }

  bool was_used() {
    const std::lock_guard lock(mutex_);
    return made_ != 0;
  }
  std::uint64_t lost() const noexcept { return lost_.load(); }
  std::uint64_t refused() const noexcept { return refused_.load(); }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::uint8_t*> free_;
  std::vector<Filled> filled_;
  std::size_t made_ = 0;
  std::size_t out_ = 0;
  bool wanted_ = false;
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> refused_{0};
};

void CUPTIAPI request_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = Buffers::instance().take();
  *bytes = *buffer != nullptr ? kBufferBytes : 0;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                          std::size_t /*bytes*/, std::size_t valid_bytes) {
  Buffers::instance().give_back(buffer, valid_bytes);
}

std::uint64_t CUPTIAPI now() { return clock_ticks(); }

void CUPTIAPI on_callback(void* /*user*/, CUpti_CallbackDomain /*domain*/, CUpti_CallbackId /*id*/,
                          const void* /*data*/) {}

// By the driver, which CUPTI has loaded.
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

// Not by cuptiGetResultString: without a driver that of 13.2 calls itself until the stack is full.
const char* reason(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "this user may not profile";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "it has a client already";
    case CUPTI_ERROR_NOT_INITIALIZED:
      return "it could not be initialised";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
      return "the device is virtualised";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      return "the device is in confidential computing mode";
    case CUPTI_ERROR_NOT_SUPPORTED:
      return "it does not support this device";
    default:
      return "an error";
  }
}

Error refused(CUptiResult result) {
  Error error{"cannot record what the GPU does",
              std::string("CUPTI refuses: ") + reason(result) + " (" +
                  std::to_string(static_cast<int>(result)) + ")",
              ""};
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      error.remedy =
          "Ask the machine's owner to load the driver with NVreg_RestrictProfilingToAdminUsers=0, "
          "or "
          "run as root";
      break;
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      error.remedy = "Another profiler is attached to this process: end it first";
      break;
    default:
      break;
  }
  return error;
}

class CuptiCapture final : public DeviceCapture {
 public:
  explicit CuptiCapture(const CuptiLibrary& cupti) : cupti_(cupti) {}
  ~CuptiCapture() override {
    disable();
    if (subscribed_) cupti_.unsubscribe(subscriber_);
    Buffers::instance().want(false);
  }

  Result<void> start() {
    if (const CUptiResult result = cupti_.subscribe(&subscriber_, &on_callback, nullptr);
        result != CUPTI_SUCCESS)
      return refused(result);
    subscribed_ = true;
    lost_before_ = Buffers::instance().lost();
    refused_before_ = Buffers::instance().refused();
    if (const CUptiResult result = cupti_.register_callbacks(&request_buffer, &take_buffer);
        result != CUPTI_SUCCESS)
      return refused(result);
    set_clock();
    Buffers::instance().want(true);
    return {};
  }

  Result<void> enable() noexcept override {
    for (const CUpti_ActivityKind kind : kKinds) {
      const CUptiResult result = cupti_.enable(kind);
      if (result == CUPTI_SUCCESS) continue;
      disable();
      return refused(result);
    }
    return {};
  }

  void disable() noexcept override {
    for (const CUpti_ActivityKind kind : kKinds) cupti_.disable(kind);
  }

  void push(std::uint64_t frame) noexcept override { cupti_.push_id(kTagKind, frame); }
  void pop() noexcept override {
    std::uint64_t frame = 0;
    cupti_.pop_id(kTagKind, &frame);
  }

  void drain(DeviceConsumer& consumer, bool all) override {
    const auto now = std::chrono::steady_clock::now();
    constexpr auto kPause = std::chrono::milliseconds(20);
    if (all) synchronize();
    if (all || now - flushed_ >= kPause) {
      flushed_ = now;
      cupti_.flush_all(all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    }
    constexpr auto kLongest = std::chrono::milliseconds(500);
    if (all) Buffers::instance().wait_for_all(kLongest);
    std::vector<Buffers::Filled> filled = Buffers::instance().take_filled();
    // Launches first: what they ask for may stand in an earlier buffer.
    for_each(filled, [&](const CUpti_Activity& record) {
      if (is_launch_record(record)) read_launch_record(record, clock_, consumer);
    });
    for_each(filled, [&](const CUpti_Activity& record) {
      ++health_.records;
      if (!is_launch_record(record))
        read_device_record(record, cupti_.version, clock_, consumer, health_);
    });
    count_dropped();
    Buffers::instance().reuse(filled);
  }

  GpuHealth health() const override {
    GpuHealth health = health_;
    health.source = "CUPTI " + std::to_string(cupti_.version);
    health.buffers_lost = Buffers::instance().lost() - lost_before_;
    health.no_buffer = Buffers::instance().refused() - refused_before_;
    return health;
  }

  std::string name() const override { return device_names(); }

 private:
  // Lets the devices finish what they were asked for, at the end of a session: a record of what
  // still runs would have no end. Where CUDA was not used, nothing is started for it.
  static void synchronize() {
    if (!Buffers::instance().was_used()) return;
    if (void* function = dlsym(RTLD_DEFAULT, "cudaDeviceSynchronize"))
      reinterpret_cast<int (*)()>(function)();
  }

  void set_clock() {
    if (cupti_.register_timestamp_callback != nullptr &&
        cupti_.register_timestamp_callback(&now) == CUPTI_SUCCESS)
      return;
    std::uint64_t cupti_ns = 0;
    const std::uint64_t before = clock_ticks();
    if (cupti_.get_timestamp(&cupti_ns) != CUPTI_SUCCESS) return;
    const std::uint64_t after = clock_ticks();
    clock_ =
        DeviceClock(cupti_ns, before + (after - before) / 2, TickScale::measure().ns_per_tick());
  }

  template <typename Function>
  void for_each(const std::vector<Buffers::Filled>& buffers, const Function& function) const {
    for (const Buffers::Filled& buffer : buffers) {
      CUpti_Activity* record = nullptr;
      while (cupti_.next_record(buffer.data, buffer.bytes, &record) == CUPTI_SUCCESS)
        function(*record);
    }
  }

  // The count starts again at each reading.
  void count_dropped() {
    std::size_t dropped = 0;
    if (cupti_.dropped_records(nullptr, 0, &dropped) == CUPTI_SUCCESS) health_.dropped += dropped;
  }

  const CuptiLibrary& cupti_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  bool subscribed_ = false;
  DeviceClock clock_;
  std::chrono::steady_clock::time_point flushed_{};
  GpuHealth health_;
  std::uint64_t lost_before_ = 0;
  std::uint64_t refused_before_ = 0;
};

}  // namespace
}  // namespace layertrace::cuda

namespace layertrace {

Result<std::shared_ptr<DeviceCapture>> make_device_capture() {
  const auto& cupti = cuda::CuptiLibrary::load();
  if (!cupti) return cupti.error();
  auto capture = std::make_shared<cuda::CuptiCapture>(*cupti);
  if (auto started = capture->start(); !started) return started.error();
  return std::shared_ptr<DeviceCapture>(std::move(capture));
}

}  // namespace layertrace
