#include "activity/cupti_calls.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "record/definitions.h"

namespace layertrace::cuda {
namespace {

// Some functions of either domain, under ids of the test's own.
const std::map<std::uint32_t, const char*> kRuntimeNames = {
    {1, "cudaLaunchKernel_v7000"},
    {2, "cudaMemcpyAsync_v3020"},
    {3, "cudaMemsetAsync_v3020"},
    {4, "cudaDeviceSynchronize_v3020"},
    {5, "cudaMalloc_v3020"},
    {6, "cudaStreamWaitEvent_v3020"},
    {7, "cudaGraphLaunch_v10000"},
    {8, "cudaMemPrefetchAsync_v8000"},
    {9, "cudaLaunchKernel_ptsz_v7000"},
    {10, "cuda_vector"},
};
const std::map<std::uint32_t, const char*> kDriverNames = {
    {1, "cuLaunchKernel"},
    {2, "cuMemcpyHtoDAsync_v2"},
    {3, "cuStreamSynchronize"},
    {4, "cuMemAlloc_v2"},
    {CUPTI_DRIVER_TRACE_CBID_SIZE + 5, "cuLaunchOfTheFuture"},
    {CUPTI_DRIVER_TRACE_CBID_SIZE + 6, "cuNewsOfTheFuture"},
};

int names_asked = 0;

CUptiResult fake_callback_name(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  ++names_asked;
  const auto& names = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? kRuntimeNames : kDriverNames;
  const auto known = names.find(id);
  if (known == names.end()) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = known->second;
  return CUPTI_SUCCESS;
}

CuptiLibrary library_with_names() {
  CuptiLibrary library;
  library.callback_name = fake_callback_name;
  return library;
}

class CuptiCallsTest : public ::testing::Test {
 protected:
  const CuptiLibrary library_ = library_with_names();
  CuptiCalls calls_{library_};

  std::string name(CUpti_CallbackDomain domain, std::uint32_t id) {
    return NameTable::instance().text(calls_.of(domain, id).name);
  }
  CallKind kind(CUpti_CallbackDomain domain, std::uint32_t id) {
    return calls_.of(domain, id).kind;
  }
};

constexpr auto kOfRuntime = CUPTI_CB_DOMAIN_RUNTIME_API;
constexpr auto kOfDriver = CUPTI_CB_DOMAIN_DRIVER_API;

TEST_F(CuptiCallsTest, NamesCallsWithoutTheVersionThatCuptiAdds) {
  EXPECT_EQ(name(kOfRuntime, 1), "cudaLaunchKernel");
  EXPECT_EQ(name(kOfRuntime, 9), "cudaLaunchKernel_ptsz");
  EXPECT_EQ(name(kOfRuntime, 10), "cuda_vector");  // no version
  EXPECT_EQ(name(kOfDriver, 1), "cuLaunchKernel");
}

TEST_F(CuptiCallsTest, SaysWhatACallWants) {
  EXPECT_EQ(kind(kOfRuntime, 1), CallKind::kAsk);
  EXPECT_EQ(kind(kOfRuntime, 2), CallKind::kCopy);
  EXPECT_EQ(kind(kOfRuntime, 3), CallKind::kCopy);
  EXPECT_EQ(kind(kOfRuntime, 4), CallKind::kWait);
  EXPECT_EQ(kind(kOfRuntime, 6), CallKind::kAsk);
  EXPECT_EQ(kind(kOfDriver, 2), CallKind::kCopy);
  EXPECT_EQ(kind(kOfDriver, 3), CallKind::kWait);
}

TEST_F(CuptiCallsTest, AsksForANameOnce) {
  static_cast<void>(name(kOfRuntime, 1));
  names_asked = 0;
  static_cast<void>(name(kOfRuntime, 1));
  EXPECT_EQ(names_asked, 0);
  static_cast<void>(name(kOfDriver, 1));  // the same id, another function
  EXPECT_EQ(names_asked, 1);
}

TEST_F(CuptiCallsTest, HasAWordForWhatIsNotKnown) {
  EXPECT_EQ(name(kOfRuntime, 400), "CUDA call");
  EXPECT_EQ(name(kOfRuntime, 0xffffffffU), "CUDA call");
  EXPECT_EQ(kind(kOfRuntime, 400), CallKind::kAsk);
  const CuptiLibrary nameless;
  CuptiCalls calls(nameless);
  EXPECT_EQ(NameTable::instance().text(calls.of(kOfRuntime, 1).name), "CUDA call");
}

TEST_F(CuptiCallsTest, KnowsOfEachWhetherItIsWanted) {
  EXPECT_TRUE(calls_.of(kOfRuntime, 1).is_wanted);
  EXPECT_FALSE(calls_.of(kOfRuntime, 5).is_wanted);
  EXPECT_TRUE(calls_.of(kOfRuntime, 400).is_wanted);  // who knows
}

TEST_F(CuptiCallsTest, DoesNotWantWhatNoDeviceIsAskedForNorWaitedFor) {
  EXPECT_EQ(calls_.unwanted(kOfRuntime), (std::vector<CUpti_CallbackId>{5, 6, 10}));
  // Also of what came after these headers.
  EXPECT_EQ(calls_.unwanted(kOfDriver),
            (std::vector<CUpti_CallbackId>{4, CUPTI_DRIVER_TRACE_CBID_SIZE + 6}));
}

}  // namespace
}  // namespace layertrace::cuda
