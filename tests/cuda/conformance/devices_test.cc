#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace {

TEST(Devices, AreCountedFromZero) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  ASSERT_GE(count, 1);
  EXPECT_EQ(cudaSetDevice(count), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 0);
}

TEST(Devices, HavePropertiesThatAgreeWithTheirAttributes) {
  cudaDeviceProp prop{};
  ASSERT_EQ(cudaGetDeviceProperties(&prop, 0), cudaSuccess);
  EXPECT_FALSE(std::string(prop.name).empty());
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    EXPECT_EQ(cudaDeviceGetAttribute(&value, which, 0), cudaSuccess);
    return value;
  };
  EXPECT_EQ(attribute(cudaDevAttrMultiProcessorCount), prop.multiProcessorCount);
  EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMajor), prop.major);
  EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMinor), prop.minor);
  EXPECT_EQ(attribute(cudaDevAttrWarpSize), prop.warpSize);
  EXPECT_EQ(attribute(cudaDevAttrMaxThreadsPerBlock), prop.maxThreadsPerBlock);
  EXPECT_EQ(attribute(cudaDevAttrMaxThreadsPerMultiProcessor), prop.maxThreadsPerMultiProcessor);
  EXPECT_EQ(attribute(cudaDevAttrL2CacheSize), prop.l2CacheSize);
  EXPECT_EQ(cudaGetDeviceProperties(&prop, 1000), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(Devices, AreEachThreadsOwnChoice) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  std::thread([] {
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  }).join();
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // errors are a thread's own, too
}

TEST(Errors, AreRememberedUntilTheyAreAskedFor) {
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  int device = 0;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);  // does not forget it
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Versions, AreAtLeastTheHeaders) {
  int driver = 0;
  int runtime = 0;
  ASSERT_EQ(cudaDriverGetVersion(&driver), cudaSuccess);
  ASSERT_EQ(cudaRuntimeGetVersion(&runtime), cudaSuccess);
  EXPECT_EQ(runtime / 1000, CUDART_VERSION / 1000);
  EXPECT_GE(driver, runtime);
}

}  // namespace
