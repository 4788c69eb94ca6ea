// A small program that launches kernels and says what CUPTI told of them, one fact a line: the
// tests run it with faults, which are chosen once per process.
//
//   cupti_client [LAUNCHES]
#include <cuda_runtime_api.h>
#include <cupti.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/known_launch.h"

namespace {

constexpr std::size_t kBufferBytes = 4096;
constexpr std::size_t kBytes = 4096;
constexpr std::uint64_t kKernelNs = 20'000;

struct Delivered {
  std::mutex mutex;
  std::vector<std::vector<std::uint8_t>> buffers;
  std::size_t null_buffers = 0;
};
Delivered delivered;
std::atomic<bool> flushed = false;
std::atomic<std::size_t> late_buffers = 0;

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = kBufferBytes;
  *most = 0;
  *buffer = static_cast<std::uint8_t*>(std::malloc(kBufferBytes));
}

void CUPTIAPI complete(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                       std::size_t /*size*/, std::size_t valid) {
  const std::lock_guard lock(delivered.mutex);
  if (flushed) ++late_buffers;
  if (buffer == nullptr) {
    ++delivered.null_buffers;
    return;
  }
  delivered.buffers.emplace_back(buffer, buffer + valid);
  std::free(buffer);
}

template <typename Result>
void say(const char* key, Result result) {
  std::printf("%s %" PRIu64 "\n", key, static_cast<std::uint64_t>(result));
}

void CUPTIAPI ignore(void* /*user*/, CUpti_CallbackDomain /*domain*/, CUpti_CallbackId /*id*/,
                     const void* /*data*/) {}

// The fields that matter are the same in both versions.
void say_records() {
  std::size_t records = 0;
  const std::lock_guard lock(delivered.mutex);
  for (std::vector<std::uint8_t>& buffer : delivered.buffers) {
    CUpti_Activity* record = nullptr;
    CUptiResult result = CUPTI_SUCCESS;
    const std::uint8_t* last = nullptr;
    while ((result = cuptiActivityGetNextRecord(buffer.data(), buffer.size(), &record)) ==
           CUPTI_SUCCESS) {
      const auto* at = reinterpret_cast<const std::uint8_t*>(record);
      if (last != nullptr) say("record_bytes", at - last);
      last = at;
      ++records;
      if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
        std::printf("kernel %u %" PRIu64 " %" PRIu64 " %s\n", kernel->correlationId, kernel->start,
                    kernel->end, kernel->name);
      } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy5*>(record);
        std::printf("copy %u %" PRIu64 "\n", copy->correlationId, copy->bytes);
      } else {
        say("other_kind", record->kind);
      }
    }
    if (last != nullptr) say("record_bytes", buffer.data() + buffer.size() - last);
    say("walk", result);
  }
  say("records", records);
  say("buffers", delivered.buffers.size());
  say("null_buffers", delivered.null_buffers);
}

}  // namespace

int main(int argc, char** argv) {
  const long launches = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 20;
  std::uint32_t version = 0;
  say("version_result", cuptiGetVersion(&version));
  say("version", version);
  say("flush_before_register", cuptiActivityFlushAll(0));
  CUpti_SubscriberHandle subscriber = nullptr;
  say("subscribe", cuptiSubscribe(&subscriber, ignore, nullptr));
  say("register", cuptiActivityRegisterCallbacks(request, complete));
  say("enable_kernels", cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  say("enable_copies", cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));

  static cudaStream_t stream = nullptr;  // of a lost device, it cannot be destroyed
  say("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 3; ++i) {
    void* memory = nullptr;
    say("malloc", cudaMalloc(&memory, kBytes));
    if (memory == nullptr) continue;
    if (i == 2) {
      std::vector<char> host(kBytes);
      say("memcpy", cudaMemcpy(memory, host.data(), kBytes, cudaMemcpyHostToDevice));
    }
    say("free", cudaFree(memory));
  }
  for (long i = 0; i < launches; ++i) {
    say("launch", simgpu::launch({.name = "work",
                                  .grid = dim3(8),
                                  .block = dim3(64),
                                  .shared_bytes = 0,
                                  .stream = stream,
                                  .duration_ns = kKernelNs}));
  }
  const cudaError_t synchronized = cudaStreamSynchronize(stream);
  say("synchronize", synchronized);
  // A device that is lost cannot be waited for.
  if (synchronized != cudaSuccess) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  say("last_error", cudaGetLastError());
  say("last_error_again", cudaGetLastError());
  say("malloc_at_the_end", [] {
    void* memory = nullptr;
    return cudaMalloc(&memory, kBytes);
  }());

  say("destroy", cudaStreamDestroy(stream));

  say("flush", cuptiActivityFlushAll(0));
  std::size_t dropped = 0;
  {
    const std::lock_guard lock(delivered.mutex);
    flushed = true;
    say("buffers_at_the_flush", delivered.buffers.size());
  }
  // So long that what comes late is there.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  say("dropped_result", cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  say("dropped", dropped);
  say("late_buffers", late_buffers.load());
  say_records();
}
