#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "cuda/conformance/sizes.h"

namespace {

std::vector<unsigned char> counting() {
  std::vector<unsigned char> bytes(kBytes);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  return bytes;
}

TEST(Copies, GoThereAndBack) {
  void* a = nullptr;
  void* b = nullptr;
  ASSERT_EQ(cudaMalloc(&a, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&b, kBytes), cudaSuccess);
  const std::vector<unsigned char> sent = counting();
  std::vector<unsigned char> received(kBytes);
  EXPECT_EQ(cudaMemcpy(a, sent.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(b, a, kBytes, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(received.data(), b, kBytes, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(cudaFree(a), cudaSuccess);
  EXPECT_EQ(cudaFree(b), cudaSuccess);
}

TEST(Copies, OfRowsLeaveTheRestAlone) {
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMemset(device, 9, kBytes), cudaSuccess);
  const std::vector<unsigned char> sent = counting();
  ASSERT_EQ(cudaMemcpy2DAsync(device, 64, sent.data(), 16, 16, 4, cudaMemcpyHostToDevice, nullptr),
            cudaSuccess);
  std::vector<unsigned char> received(kBytes);
  ASSERT_EQ(cudaMemcpy(received.data(), device, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(received[0], 1);
  EXPECT_EQ(received[15], 16);
  EXPECT_EQ(received[16], 9);
  EXPECT_EQ(received[64], 17);
  EXPECT_EQ(received[3 * 64 + 15], 64);
  EXPECT_EQ(cudaMemcpy2DAsync(device, 8, sent.data(), 16, 16, 4, cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Copies, BeyondTheMemoryAreRefused) {
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  const std::vector<unsigned char> sent(64 * kBytes);
  EXPECT_EQ(cudaMemcpy(device, sent.data(), sent.size(), cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2DAsync(device, kBytes, sent.data(), kBytes, kBytes, 64,
                              cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Sets, FillEveryByte) {
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  EXPECT_EQ(cudaMemset(device, 0xab, kBytes), cudaSuccess);
  std::vector<unsigned char> received(kBytes);
  ASSERT_EQ(cudaMemcpy(received.data(), device, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(received, std::vector<unsigned char>(kBytes, 0xab));
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Allocation, OfNothingIsNull) {
  int something = 0;
  void* device = &something;
  EXPECT_EQ(cudaMalloc(&device, 0), cudaSuccess);
  EXPECT_EQ(device, nullptr);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
}

TEST(Allocation, IsCountedAndEnds) {
  std::size_t before = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  EXPECT_LE(before, total);
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, std::size_t{64} << 20), cudaSuccess);
  std::size_t after = 0;
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_LE(after, before - (std::size_t{64} << 20));
  void* too_much = nullptr;
  EXPECT_EQ(cudaMalloc(&too_much, total + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);  // the device is not worse for it
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Pointers, TellWhatTheyPointTo) {
  void* device = nullptr;
  void* host = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&host, kBytes), cudaSuccess);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, static_cast<char*>(device) + 100), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, host), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, host);
  std::vector<char> own(kBytes);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, own.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  ASSERT_EQ(cudaHostRegister(own.data(), kBytes, cudaHostRegisterDefault), cudaSuccess);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, own.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaHostUnregister(own.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(own.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaGetLastError(), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

}  // namespace
