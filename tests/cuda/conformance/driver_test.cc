#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cuda/conformance/sizes.h"

namespace {

struct Driver : ::testing::Test {
  Driver() {
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);  // the primary context is there and current
  }
  ~Driver() override { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }
};

TEST_F(Driver, DescribesDevicesAsTheRuntimeDoes) {
  int count = 0;
  int runtime_count = 0;
  ASSERT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  ASSERT_EQ(cudaGetDeviceCount(&runtime_count), cudaSuccess);
  EXPECT_EQ(count, runtime_count);
  CUdevice device = -1;
  ASSERT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  char name[256] = {};
  ASSERT_EQ(cuDeviceGetName(name, sizeof name, device), CUDA_SUCCESS);
  EXPECT_STREQ(name, properties.name);
  char part[5] = {};
  ASSERT_EQ(cuDeviceGetName(part, sizeof part, device), CUDA_SUCCESS);
  EXPECT_EQ(std::string(part), std::string(properties.name).substr(0, 4));
  std::size_t bytes = 0;
  ASSERT_EQ(cuDeviceTotalMem(&bytes, device), CUDA_SUCCESS);
  EXPECT_EQ(bytes, properties.totalGlobalMem);
  int value = 0;
  ASSERT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
            CUDA_SUCCESS);
  EXPECT_EQ(value, properties.multiProcessorCount);
  CUuuid uuid{};
  ASSERT_EQ(cuDeviceGetUuid(&uuid, device), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(&uuid, &properties.uuid, sizeof uuid), 0);
  int version = 0;
  ASSERT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_GE(version, CUDA_VERSION);
}

TEST_F(Driver, SharesTheRuntimesContext) {
  CUcontext current = nullptr;
  ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  ASSERT_NE(current, nullptr);
  CUcontext primary = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
  EXPECT_EQ(primary, current);
  unsigned flags = 0;
  int active = 0;
  ASSERT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 1);
  CUdevice device = -1;
  ASSERT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
  ASSERT_EQ(cuCtxPushCurrent(primary), CUDA_SUCCESS);
  CUcontext popped = nullptr;
  ASSERT_EQ(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
  EXPECT_EQ(popped, primary);
  ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, primary);
  std::thread([&] {
    EXPECT_EQ(cuCtxSetCurrent(primary), CUDA_SUCCESS);
    CUcontext here = nullptr;
    EXPECT_EQ(cuCtxGetCurrent(&here), CUDA_SUCCESS);
    EXPECT_EQ(here, primary);
  }).join();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  CUcontext of_stream = nullptr;
  EXPECT_EQ(cuStreamGetCtx(stream, &of_stream), CUDA_SUCCESS);
  EXPECT_EQ(of_stream, primary);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

TEST_F(Driver, LoadsCode) {
  const char* code =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".visible .entry nothing()\n{\nret;\n}\n";
  CUmodule module = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, code), CUDA_SUCCESS);
  CUfunction function = nullptr;
  ASSERT_EQ(cuModuleGetFunction(&function, module, "nothing"), CUDA_SUCCESS);
  EXPECT_NE(function, nullptr);
  int threads = 0;
  EXPECT_EQ(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
            CUDA_SUCCESS);
  EXPECT_GE(threads, 1);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
}

TEST_F(Driver, NamesItsErrors) {
  const char* text = nullptr;
  ASSERT_EQ(cuGetErrorName(CUDA_SUCCESS, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_SUCCESS");
  ASSERT_EQ(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
  ASSERT_EQ(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(998), &text), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Driver, GivesItsFunctionsByName) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  ASSERT_EQ(cuGetProcAddress("cuDeviceGetCount", &function, CUDA_VERSION,
                             CU_GET_PROC_ADDRESS_DEFAULT, &status),
            CUDA_SUCCESS);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  int count = 0;
  EXPECT_EQ(reinterpret_cast<CUresult (*)(int*)>(function)(&count), CUDA_SUCCESS);
  EXPECT_GE(count, 1);
  static_cast<void>(cuGetProcAddress("cuNoSuchFunction", &function, CUDA_VERSION,
                                     CU_GET_PROC_ADDRESS_DEFAULT, &status));
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_F(Driver, GivesItsFunctionsToTheRuntime) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  ASSERT_EQ(
      cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 12000, cudaEnableDefault, &status),
      cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  EXPECT_NE(function, nullptr);
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000,
                                             cudaEnableDefault, &status),
            cudaSuccess);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(
      cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 99000, cudaEnableDefault, &status),
      cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(Driver, TellsWhatPointersPointTo) {
  void* device = nullptr;
  void* pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  const auto inside = reinterpret_cast<CUdeviceptr>(device) + 100;
  const auto host = reinterpret_cast<CUdeviceptr>(pinned);
  unsigned type = 0;
  ASSERT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  ASSERT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  int ordinal = -1;
  ASSERT_EQ(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside),
            CUDA_SUCCESS);
  EXPECT_EQ(ordinal, 0);
  CUcontext context = nullptr;
  CUcontext current = nullptr;
  ASSERT_EQ(
      cuPointerGetAttribute(static_cast<void*>(&context), CU_POINTER_ATTRIBUTE_CONTEXT, inside),
      CUDA_SUCCESS);
  ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(context, current);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuPointerGetAttribute(&address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside),
            CUDA_SUCCESS);
  EXPECT_EQ(address, inside);
  void* host_pointer = nullptr;
  ASSERT_EQ(cuPointerGetAttribute(static_cast<void*>(&host_pointer),
                                  CU_POINTER_ATTRIBUTE_HOST_POINTER, host),
            CUDA_SUCCESS);
  EXPECT_EQ(host_pointer, pinned);
  EXPECT_EQ(cuPointerGetAttribute(static_cast<void*>(&host_pointer),
                                  CU_POINTER_ATTRIBUTE_HOST_POINTER, inside),
            CUDA_ERROR_INVALID_VALUE);
  std::vector<char> own(kBytes);
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  reinterpret_cast<CUdeviceptr>(own.data())),
            CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  ASSERT_EQ(cuMemGetAddressRange(&base, &bytes, inside), CUDA_SUCCESS);
  EXPECT_EQ(base, reinterpret_cast<CUdeviceptr>(device));
  EXPECT_GE(bytes, kBytes);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

// Addresses and memory, apart and together.
struct Mapping : Driver {
  Mapping() {
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 0;
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_EQ(
        cuMemGetAllocationGranularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        CUDA_SUCCESS);
    EXPECT_EQ(cuMemAddressReserve(&address, 2 * granule, 0, 0, 0), CUDA_SUCCESS);
  }
  ~Mapping() override { EXPECT_EQ(cuMemAddressFree(address, 2 * granule), CUDA_SUCCESS); }
  static std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return free;
  }
  CUmemGenericAllocationHandle create(std::size_t bytes) const {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, bytes, &properties, 0), CUDA_SUCCESS);
    return handle;
  }

  CUmemAllocationProp properties{};
  CUmemAccessDesc access{};
  std::size_t granule = 0;
  CUdeviceptr address = 0;
};

TEST_F(Mapping, MakesMemoryOfTwoPieces) {
  const CUmemGenericAllocationHandle first = create(granule);
  const CUmemGenericAllocationHandle second = create(granule);
  ASSERT_EQ(cuMemMap(address, granule, 0, first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(address + granule, granule, 0, second, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemSetAccess(address, 2 * granule, &access, 1), CUDA_SUCCESS);
  auto* memory = reinterpret_cast<char*>(address);
  EXPECT_EQ(cudaMemset(memory, 3, granule), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory + granule, 4, granule), cudaSuccess);
  char bytes[2] = {};
  ASSERT_EQ(cudaMemcpy(bytes, memory + granule - 1, 1, cudaMemcpyDeviceToHost), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(bytes + 1, memory + granule, 1, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(bytes[0], 3);
  EXPECT_EQ(bytes[1], 4);
  EXPECT_EQ(cuMemUnmap(address, granule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(address + granule, granule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(first), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(second), CUDA_SUCCESS);
}

TEST_F(Mapping, TakesMemoryUntilTheLastUseOfIt) {
  constexpr std::size_t kBig = std::size_t{256} << 20;
  const std::size_t before = free_bytes();
  CUdeviceptr big = 0;
  ASSERT_EQ(cuMemAddressReserve(&big, kBig, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_GE(free_bytes() + (kBig / 2), before);  // addresses are no memory
  const CUmemGenericAllocationHandle handle = create(kBig);
  EXPECT_LE(free_bytes(), before - kBig);
  ASSERT_EQ(cuMemMap(big, kBig, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_LE(free_bytes(), before - kBig);  // still mapped
  EXPECT_EQ(cuMemUnmap(big, kBig), CUDA_SUCCESS);
  EXPECT_GT(free_bytes(), before - kBig);
  EXPECT_EQ(cuMemAddressFree(big, kBig), CUDA_SUCCESS);
}

TEST_F(Mapping, RefusesMoreThanThereIs) {
  std::size_t total = 0;
  ASSERT_EQ(cuDeviceTotalMem(&total, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, (total / granule + 1) * granule, &properties, 0),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemCreate(&handle, granule + 1, &properties, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Mapping, RefusesWhatDoesNotFit) {
  const CUmemGenericAllocationHandle handle = create(granule);
  EXPECT_EQ(cuMemMap(address, 2 * granule, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemMap(address, granule, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_NE(cuMemMap(address, granule, 0, handle, 0), CUDA_SUCCESS);  // mapped already
  EXPECT_EQ(cuMemSetAccess(address, 2 * granule, &access, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address + granule, granule), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address, granule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

}  // namespace
