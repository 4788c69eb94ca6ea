// A kernel of one's own, with two streams and events around it. Linked with the CUDA runtime as a
// shared library (nvcc -cudart shared), it runs on a GPU, and unchanged on the simulated one:
//
//   layertrace simgpu -- build/bin/saxpy
//
// It says on which of them it ran. On the simulated one nothing is computed, so the result is not
// checked there.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

__global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "saxpy: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

int main() {
  constexpr int kCount = 1 << 20;
  constexpr int kThreads = 256;
  constexpr float kFactor = 2;
  const std::size_t bytes = kCount * sizeof(float);

  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "no device");
  const bool simulated = std::strstr(device.name, "simulated") != nullptr;

  std::vector<float> ones(kCount, 1);
  float* x = nullptr;
  float* y = nullptr;
  check(cudaMalloc(&x, bytes), "cudaMalloc");
  check(cudaMalloc(&y, bytes), "cudaMalloc");

  cudaStream_t copies, work;
  cudaEvent_t copied, start, end;
  check(cudaStreamCreate(&copies), "cudaStreamCreate");
  check(cudaStreamCreate(&work), "cudaStreamCreate");
  check(cudaEventCreate(&copied), "cudaEventCreate");
  check(cudaEventCreate(&start), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");

  check(cudaMemcpyAsync(x, ones.data(), bytes, cudaMemcpyHostToDevice, copies), "copy");
  check(cudaMemcpyAsync(y, ones.data(), bytes, cudaMemcpyHostToDevice, copies), "copy");
  check(cudaEventRecord(copied, copies), "record");
  check(cudaStreamWaitEvent(work, copied, 0), "wait");
  check(cudaEventRecord(start, work), "record");
  saxpy<<<(kCount + kThreads - 1) / kThreads, kThreads, 0, work>>>(kCount, kFactor, x, y);
  check(cudaGetLastError(), "launch");
  check(cudaEventRecord(end, work), "record");

  std::vector<float> result(kCount);
  check(cudaMemcpyAsync(result.data(), y, bytes, cudaMemcpyDeviceToHost, work), "copy back");
  check(cudaStreamSynchronize(work), "synchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start, end), "elapsed time");

  if (!simulated) {
    for (const float each : result) {
      if (each == kFactor * 1 + 1) continue;
      std::fprintf(stderr, "saxpy: wrong result %f\n", each);
      return 1;
    }
  }
  std::printf("saxpy of %d numbers on %s: %.4f ms%s\n", kCount, device.name, milliseconds,
              simulated ? " (simulated: no GPU's time)" : ", right");
  check(cudaFree(x), "cudaFree");
  check(cudaFree(y), "cudaFree");
}
