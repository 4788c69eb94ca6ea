#include "runtime/api.h"

#include <memory>
#include <utility>
#include <vector>

namespace simgpu {
namespace {

// What a call takes on the virtual clock.
constexpr std::uint64_t kCallNs = 500;

// A thread's own default streams. What is in them runs to its end when the thread does.
class OwnStreams {
 public:
  OwnStreams() : streams_(static_cast<std::size_t>(machine().device_count())) {}
  ~OwnStreams() {
    for (const auto& stream : streams_) {
      if (stream != nullptr) timeline_of(*stream).remove_stream(stream->queue);
    }
  }
  OwnStreams(const OwnStreams&) = delete;  // programs have the streams' addresses
  OwnStreams& operator=(const OwnStreams&) = delete;

  Stream& on(int device) {
    std::unique_ptr<Stream>& stream = streams_[static_cast<std::size_t>(device)];
    if (stream == nullptr) {
      stream = std::make_unique<Stream>();
      stream->device = device;
      stream->id = machine().new_stream_id();
      stream->queue = machine().device(device).timeline.add_stream(/*blocking=*/true);
    }
    return *stream;
  }

 private:
  std::vector<std::unique_ptr<Stream>> streams_;  // by device
};

// Asking what there is, or choosing, makes no context, and works on a lost device, too.
bool only_asks(Api api, std::uint32_t id) {
  if (api != Api::kRuntime) return false;
  switch (id) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020:
    case CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020:  // makes that of the new one
    case CUPTI_RUNTIME_TRACE_CBID_cudaGetDeviceProperties_v12000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetPCIBusId_v4010:
    case CUPTI_RUNTIME_TRACE_CBID_cudaDeviceCanAccessPeer_v4000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaGetDriverEntryPointByVersion_v12050:
      return true;
    default:
      return false;
  }
}

}  // namespace

ThreadState& this_thread() noexcept {
  static thread_local ThreadState state;
  return state;
}

cudaError_t failed(cudaError_t error) noexcept {
  ThreadState& thread = this_thread();
  thread.result = error;
  if (error != cudaSuccess) thread.last_error = error;
  return error;
}

cudaError_t answered(cudaError_t answer) noexcept { return this_thread().result = answer; }

Call::Call(Api api, std::uint32_t id, const char* function, const void* parameters,
           const char* kernel) {
  ThreadState& thread = this_thread();
  thread.result = cudaSuccess;
  if (machine().device_count() == 0) usable_ = cudaErrorNoDevice;
  if (machine().lost() && !only_asks(api, id)) usable_ = cudaErrorLaunchFailure;
  if (machine().forked()) usable_ = cudaErrorInitializationError;
  // A function that a stream calls must not call back: it would wait for itself.
  if (HostFunctions::is_calling()) usable_ = cudaErrorNotPermitted;
  if (thread.depth++ != 0 || machine().forked()) return;
  // The driver makes a context when it is asked for one.
  if (usable_ == cudaSuccess && api == Api::kRuntime && !only_asks(api, id))
    machine().enter_context(thread.device);
  thread.correlation = machine().new_correlation();
  machine().clock().charge(kCallNs);
  Observer* const observer = machine().observer();
  if (observer == nullptr || !observer->watches(api, id)) return;
  observer_ = observer;
  call_.api = api;
  call_.id = id;
  call_.function = function;
  call_.parameters = parameters;
  call_.kernel = kernel;
  call_.correlation = thread.correlation;
  call_.device = thread.device;
  observer_->on_enter(call_);
  thread.result = cudaSuccess;  // of this call, not of what the observer called
}

Call::~Call() {
  ThreadState& thread = this_thread();
  call_.result = thread.result;
  if (observer_ != nullptr) observer_->on_leave(call_);
  --thread.depth;
}

Stream& own_stream(int device) {
  static thread_local OwnStreams streams;
  return streams.on(device);
}

Stream& stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return current_device().legacy_stream;
  if (handle == cudaStreamPerThread) return own_stream(this_thread().device);
  return *reinterpret_cast<Stream*>(handle);
}

}  // namespace simgpu

// An error that leaves the device unusable stays.
SIMGPU_API cudaError_t cudaGetLastError() {
  if (simgpu::machine().lost()) return simgpu::this_thread().last_error;
  return std::exchange(simgpu::this_thread().last_error, cudaSuccess);
}

SIMGPU_API cudaError_t cudaPeekAtLastError() { return simgpu::this_thread().last_error; }
