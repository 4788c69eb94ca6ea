// Rates and utilisation of whole profiles: all figures computed by hand.
#include "roofline/rates.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace layertrace::roofline {
namespace {

constexpr std::size_t kFp32 = 1;
constexpr std::size_t kBf16 = 4;

PhaseStats& phase(std::array<PhaseStats, kPhaseCount>& phases, Phase p) {
  return phases[static_cast<std::size_t>(p)];
}

Amounts in_format(std::size_t format, double flops, double bytes = 0) {
  Amounts amounts{.flops = flops, .bytes = bytes};
  amounts.flops_by_format[format] = flops;
  return amounts;
}

// A root with one step of 1 ms on a device with 100 TFLOP/s in bf16, 10 in fp32, and 1 TB/s.
Profile profile_of_a_step() {
  Profile profile;
  profile.layers.resize(2);
  profile.layers[1].parent = 0;
  profile.step_count = 1;
  profile.step_ns.mean = 1e6;
  profile.device.origin = "given";
  profile.device.flops_per_s[kBf16] = 100e12;
  profile.device.flops_per_s[kFp32] = 10e12;
  profile.device.bytes_per_s = 1e12;
  return profile;
}

TEST(Rates, TellHowFarAPhaseIsFromTheRoof) {
  Profile profile = profile_of_a_step();
  PhaseStats& forward = phase(profile.layers[1].phases, Phase::kForward);
  forward.amounts = in_format(kBf16, 4e9, 20e6);
  forward.busy_ns.mean = 80'000;
  PhaseStats& outside = phase(profile.outside, Phase::kOptimizer);
  outside.amounts = in_format(kBf16, 0, 40e6);
  outside.busy_ns.mean = 50'000;
  fill_rates(profile);
  EXPECT_EQ(forward.rates, (Rates{.flops_per_s = 50e12,
                                  .bytes_per_s = 250e9,
                                  .intensity = 200,
                                  .roof = Roof::kCompute,
                                  .roof_share = 0.5,
                                  .unexplained_ns = 40'000}));
  EXPECT_EQ(outside.rates.roof, Roof::kMemory);
  EXPECT_DOUBLE_EQ(outside.rates.roof_share, 0.8);
  EXPECT_EQ(phase(profile.layers[1].phases, Phase::kBackward).rates, Rates{});
}

TEST(Rates, AreByEventsWhereThereAreNoKernels) {
  Profile profile = profile_of_a_step();
  PhaseStats& forward = phase(profile.layers[1].phases, Phase::kForward);
  forward.amounts = in_format(kBf16, 4e9);
  forward.event_ns.mean = 80'000;
  fill_rates(profile);
  EXPECT_DOUBLE_EQ(forward.rates.flops_per_s, 50e12);
}

TEST(Rates, OfAMixtureAreHeldAgainstItsPeak) {
  Profile profile = profile_of_a_step();
  PhaseStats& forward = phase(profile.layers[0].phases, Phase::kForward);
  forward.amounts = in_format(kBf16, 5e9);
  forward.amounts += in_format(kFp32, 5e8);
  forward.busy_ns.mean = 200'000;
  fill_rates(profile);
  EXPECT_DOUBLE_EQ(forward.rates.roof_share, 0.5);  // 50 µs and 50 µs of 200
}

TEST(Rates, NeedAPeakForEveryFormat) {
  Profile profile = profile_of_a_step();
  PhaseStats& forward = phase(profile.layers[0].phases, Phase::kForward);
  forward.amounts = in_format(kBf16, 4e9);
  forward.amounts += in_format(8, 1);  // of a format that no device has a peak for
  forward.busy_ns.mean = 80'000;
  fill_rates(profile);
  EXPECT_EQ(forward.rates.roof, Roof::kNone);
  EXPECT_EQ(profile.mfu, 0);
  EXPECT_DOUBLE_EQ(forward.rates.flops_per_s, (4e9 + 1) / 80e-6);
}

TEST(Utilization, CountsWhatIsComputedAgainInTheHfuAlone) {
  Profile profile = profile_of_a_step();
  auto& phases = profile.layers[0].phases;
  phase(phases, Phase::kForward).amounts = in_format(kBf16, 10e9);
  phase(phases, Phase::kBackward).amounts = in_format(kBf16, 20e9);
  phase(profile.layers[1].phases, Phase::kForward).amounts = in_format(kBf16, 10e9);  // in the root
  phase(profile.outside, Phase::kLoss).amounts = in_format(kBf16, 2e9);
  phase(profile.outside, Phase::kOptimizer).amounts = in_format(kBf16, 99e9);  // no model's
  fill_rates(profile);
  EXPECT_DOUBLE_EQ(profile.mfu, 0.32);  // 32 of the 100 GFLOP that fit into 1 ms
  EXPECT_DOUBLE_EQ(profile.hfu, 0.32);
  phase(phases, Phase::kRecompute).amounts = in_format(kBf16, 10e9);
  fill_rates(profile);
  EXPECT_DOUBLE_EQ(profile.mfu, 0.32);
  EXPECT_DOUBLE_EQ(profile.hfu, 0.42);
}

TEST(Utilization, IsOfAllDevicesInUse) {
  Profile profile = profile_of_a_step();
  phase(profile.layers[0].phases, Phase::kForward).amounts = in_format(kBf16, 10e9);
  profile.steps.resize(1);
  profile.steps[0].devices = {{.device = 0, .busy_ns = 5}, {.device = 1, .busy_ns = 5}};
  fill_rates(profile);
  EXPECT_EQ(profile.device.count, 2u);
  EXPECT_DOUBLE_EQ(profile.mfu, 0.05);
}

TEST(DeviceInfo, IsFoundByTheNameOfTheGpu) {
  RunInfo run;
  EXPECT_EQ(find_device_info(run), DeviceInfo{});
  run.device = "nobody's GPU";
  EXPECT_EQ(find_device_info(run).origin, "");
  EXPECT_EQ(find_device_info(run).name, "nobody's GPU");
  run.device = "NVIDIA A100-SXM4-80GB";
  const DeviceInfo known = find_device_info(run);
  EXPECT_EQ(known.origin, "published");
  EXPECT_DOUBLE_EQ(known.flops_per_s[kBf16], 312e12);
  run.device = "simulated H100-class GPU";
  EXPECT_EQ(find_device_info(run).origin, "simulated");
}

TEST(DeviceInfo, IsReadFromTextOrFile) {
  const std::string json = R"( {"name": "My GPU", "bf16_tflops": 3})";
  ASSERT_TRUE(read_device_peaks(json));
  EXPECT_DOUBLE_EQ(device_info(*read_device_peaks(json)).flops_per_s[kBf16], 3e12);
  EXPECT_EQ(device_info(*read_device_peaks(json)).origin, "given");
  const std::string path = testing::TempDir() + "/peaks.json";
  std::ofstream(path) << json;
  EXPECT_EQ(read_device_peaks(path)->name, "My GPU");
  std::remove(path.c_str());
  EXPECT_FALSE(read_device_peaks(path));
}

TEST(Formats, HaveNames) {
  EXPECT_EQ(format_name(kFp32), "fp32");
  EXPECT_EQ(format_name(8), "other");
}

}  // namespace
}  // namespace layertrace::roofline
