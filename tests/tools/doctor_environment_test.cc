// Who else profiles, where CUDA's libraries are, and what the driver's files say: on made-up
// environments, since no tool of NVIDIA's is needed to be taken for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "activity/cuda_environment.h"
#include "activity/library_places.h"

namespace layertrace::cuda {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

// The variables outlive what asks for them: both live in one expression.
GetVariable variables(const Variables& set) {
  return [&set](const char* name) {
    const auto found = set.find(name);
    return found != set.end() ? found->second.c_str() : nullptr;
  };
}

std::string profiler_in(const Variables& set, const std::vector<std::string>& libraries = {}) {
  const auto found = other_profiler(variables(set), libraries);
  return found ? found->name : "none";
}

TEST(OtherProfiler, IsKnownByItsVariables) {
  EXPECT_EQ(profiler_in({{"NSYS_PROFILING_SESSION_ID", "4711"}}), "Nsight Systems");
  EXPECT_EQ(profiler_in({{"NV_COMPUTE_PROFILER_PERFWORKS_DIR", "/opt/ncu"}}), "Nsight Compute");
  EXPECT_EQ(profiler_in({{"NV_SANITIZER_INJECTION_PORT_RANGE_BEGIN", "49152"}}),
            "Compute Sanitizer");
  EXPECT_EQ(profiler_in({{"NVPROF_ID", "1"}}), "nvprof");
}

TEST(OtherProfiler, IsKnownByItsLibraries) {
  EXPECT_EQ(profiler_in({}, {"/lib/libc.so.6", "/opt/nsys/libToolsInjection64.so"}),
            "Nsight Systems");
  EXPECT_EQ(profiler_in({}, {"/opt/nsys/libToolsInjectionProxy64.so"}), "Nsight Systems");
  EXPECT_EQ(profiler_in({}, {"/opt/x/libTreeLauncherTargetInjection.so"}), "an NVIDIA tool");
  // The launcher is loaded before the tool itself, which says more.
  EXPECT_EQ(
      profiler_in({}, {"/opt/x/libTreeLauncherTargetInjection.so", "/opt/x/libcuda-injection.so"}),
      "Nsight Compute");
}

TEST(OtherProfiler, IsKnownByWhatTheDriverIsToLoad) {
  EXPECT_EQ(profiler_in({{"CUDA_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so"}}),
            "Nsight Systems");
  EXPECT_EQ(profiler_in({{"CUDA_INJECTION64_PATH", "/opt/own/tracer.so"}}), "a CUDA tool");
  const Variables set = {{"CUDA_INJECTION64_PATH", "/opt/own/tracer.so"}};
  EXPECT_THAT(other_profiler(variables(set), {})->sign, HasSubstr("/opt/own/tracer.so"));
}

TEST(OtherProfiler, IsNotWhoeverListensToRangesOrHasCountersLibraries) {
  EXPECT_EQ(profiler_in({}), "none");
  EXPECT_EQ(profiler_in({{"NSYS_PROFILING_SESSION_ID", ""}, {"CUDA_INJECTION64_PATH", ""}}),
            "none");
  EXPECT_EQ(profiler_in({{"NVTX_INJECTION64_PATH", "/opt/listener.so"}}), "none");
  EXPECT_EQ(profiler_in({}, {"/x/libcupti.so.13", "/x/libnvperf_host.so", "/x/libcuda.so.1"}),
            "none");
  // A folder's name is not a library's.
  EXPECT_EQ(profiler_in({}, {"/opt/libToolsInjection/libm.so.6"}), "none");
}

TEST(NvtxInjection, IsTold) {
  const Variables set = {{"NVTX_INJECTION64_PATH", "/opt/listener.so"}};
  EXPECT_EQ(nvtx_injection(variables(set)), "/opt/listener.so");
  EXPECT_EQ(nvtx_injection(variables({})), "");
}

TEST(LoadedLibraries, AreThoseOfThisProcess) {
  EXPECT_THAT(loaded_libraries(), testing::Contains(HasSubstr("libc.so")));
}

TEST(LibraryNames, HaveAVersionOrAHash) {
  for (const char* file :
       {"libcupti.so", "libcupti.so.13", "libcupti.so.2026.1.0", "libcupti-4af2d9c1.so.12"})
    EXPECT_TRUE(is_named(file, kCupti)) << file;
  for (const char* file : {"libcupti_static.a", "libcupti.a", "libcupti_trace_injection.so",
                           "libcuda.so.1", "xlibcupti.so"})
    EXPECT_FALSE(is_named(file, kCupti)) << file;
}

class LibraryPlaces : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(root_); }
  std::string put(const std::string& file) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << "";
    return (root_ / file).string();
  }
  // One for each test: several run at once.
  const fs::path root_ = fs::absolute("doctor_places_" + std::to_string(getpid()));
  const std::string torch_ = (root_ / "site/torch/lib").string();
};

TEST_F(LibraryPlaces, AreWheelsThenToolkitsThenTheLoaders) {
  const std::string toolkit = put("cuda/extras/CUPTI/lib64/libcupti.so.12");
  const std::string conda = put("conda/lib/libcupti.so.12");
  const std::string new_wheel = put("site/nvidia/cu13/lib/libcupti.so.13");
  const std::string old_wheel = put("site/nvidia/cuda_cupti/lib/libcupti.so.12");
  const std::string zip = put("site/torch/lib/libcupti-4af2d9c1.so.12");
  put("site/torch/lib/libtorch_cpu.so");
  const Variables set = {{"CUDA_HOME", (root_ / "cuda").string()},
                         {"CONDA_PREFIX", (root_ / "conda").string()}};
  std::vector<std::string> places = library_places(kCupti, torch_, variables(set));
  std::erase_if(places, [](const std::string& path) { return path.starts_with("/usr/"); });
  EXPECT_THAT(places, ElementsAre(zip, new_wheel, old_wheel, toolkit, conda, "libcupti.so.13",
                                  "libcupti.so.12", "libcupti.so"));
}

TEST_F(LibraryPlaces, HaveTheUsualNameBeforeOthers) {
  const std::string exact = put("cuda/lib64/libcudart.so.13.2.51");
  const std::string plain = put("cuda/lib64/libcudart.so");
  const std::string usual = put("cuda/lib64/libcudart.so.13");
  const Variables set = {{"CUDA_PATH", (root_ / "cuda").string()}};
  const auto places = library_places(kRuntime, "", variables(set));
  ASSERT_GE(places.size(), 3U);
  EXPECT_THAT(std::vector(places.begin(), places.begin() + 3), ElementsAre(usual, plain, exact));
}

TEST_F(LibraryPlaces, StartFromTheTorchThatIsLoaded) {
  EXPECT_EQ(torch_folder_of({"/lib/libc.so.6", "/env/torch/lib/libtorch_cpu.so"}),
            "/env/torch/lib");
  EXPECT_EQ(torch_folder_of({"/lib/libc.so.6"}), "");
}

TEST(CuptiVersions, AreOfCudas) {
  EXPECT_EQ(cuda_of_cupti(130202), "13.2");
  EXPECT_EQ(cuda_of_cupti(130000), "13.0");
  EXPECT_EQ(cuda_of_cupti(26), "12.8");
  EXPECT_EQ(cuda_of_cupti(18), "11.8");
  EXPECT_EQ(cuda_of_cupti(25), "");
}

TEST(ProfilingRestriction, IsWhatTheDriverSays) {
  EXPECT_EQ(profiling_is_restricted("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n"),
            true);
  EXPECT_EQ(profiling_is_restricted("RmProfilingAdminOnly: 0\nOther: 1\n"), false);
  EXPECT_EQ(profiling_is_restricted("Other: 1\n"), std::nullopt);
  EXPECT_EQ(profiling_is_restricted(""), std::nullopt);
}

TEST(Administrator, HasTheCapability) {
  EXPECT_TRUE(is_administrator("Name:\tx\nCapPrm:\t0\nCapEff:\t000001ffffffffff\n"));
  EXPECT_TRUE(is_administrator("CapEff:\t0000000000200000\n"));
  EXPECT_FALSE(is_administrator("CapEff:\t00000000a80425fb\n"));  // Docker's usual set
  EXPECT_FALSE(is_administrator(""));
}

}  // namespace
}  // namespace layertrace::cuda
