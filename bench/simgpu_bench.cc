// What the simulated device costs the host, a call at a time. The device's own times are made up
// and are no figures of anything.
#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>
#include <cupti.h>

#include <cstdint>
#include <cstdlib>

// What nvcc's code calls to make a kernel known.
extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*,
                                       dim3*, dim3*, int*);

namespace {

char kernel = 0;

void launch_all(benchmark::State& state) {
  __cudaRegisterFunction(nullptr, &kernel, nullptr, "_Z5saxpyifPKfPf", -1, nullptr, nullptr,
                         nullptr, nullptr, nullptr);
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  for (auto _ : state) {
    cudaLaunchKernel(&kernel, dim3(64), dim3(256), nullptr, 0, stream);
  }
  cudaStreamDestroy(stream);
}

void launch(benchmark::State& state) { launch_all(state); }
BENCHMARK(launch);

void request(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBytes));
  *size = kBytes;
  *most_records = 0;
}
void complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
  std::free(buffer);
}

// With all that a profiler asks CUPTI for.
void launch_recorded(benchmark::State& state) {
  const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                      CUPTI_ACTIVITY_KIND_RUNTIME,
                                      CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
  cuptiActivityRegisterCallbacks(&request, &complete);
  for (const CUpti_ActivityKind kind : kinds) cuptiActivityEnable(kind);
  cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1);
  launch_all(state);
  cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, nullptr);
  for (const CUpti_ActivityKind kind : kinds) cuptiActivityDisable(kind);
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}
BENCHMARK(launch_recorded);

void record_event(benchmark::State& state) {
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  for (auto _ : state) cudaEventRecord(event, nullptr);
  cudaEventDestroy(event);
}
BENCHMARK(record_event);

}  // namespace
