// The table of devices: found by the names that drivers report, variants told apart, nothing made
// up.
#include "roofline/device_peaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

#include "core/device_profile.h"
#include "roofline/device_table.h"

namespace layertrace::roofline {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(DevicePeaks, KnowsAnA100) {
  const auto peaks = find_device_peaks("NVIDIA A100-SXM4-80GB");
  ASSERT_TRUE(peaks);
  EXPECT_EQ(peaks->name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(peaks->origin, Origin::kPublished);
  EXPECT_THAT(peaks->source, testing::HasSubstr("A100 datasheet"));
  EXPECT_DOUBLE_EQ(peaks->of(Dtype::kFp64).vector, 9.7e12);
  EXPECT_DOUBLE_EQ(peaks->of(Dtype::kFp64).matrix, 19.5e12);
  EXPECT_DOUBLE_EQ(peaks->of(Dtype::kFp32).vector, 19.5e12);
  EXPECT_EQ(peaks->of(Dtype::kFp32).matrix, 0);
  EXPECT_DOUBLE_EQ(peaks->of(Dtype::kTf32).matrix, 156e12);
  EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kBf16), 312e12);
  EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kInt8), 624e12);
  EXPECT_EQ(peaks->peak(Dtype::kFp8), 0);
  EXPECT_EQ(peaks->peak(Dtype::kFp4), 0);
  EXPECT_DOUBLE_EQ(peaks->bytes_per_s, 2039e9);
}

// The peak of products is that of the tensor cores, where they have the format.
TEST(DevicePeaks, TakesTheFasterUnits) {
  const auto a100 = find_device_peaks("NVIDIA A100-SXM4-80GB");
  EXPECT_DOUBLE_EQ(a100->peak(Dtype::kFp64), 19.5e12);
  EXPECT_DOUBLE_EQ(a100->peak(Dtype::kFp32), 19.5e12);
}

TEST(DevicePeaks, TellsVariantsApart) {
  const auto bandwidth = [](const char* name) {
    const auto peaks = find_device_peaks(name);
    return peaks ? peaks->bytes_per_s / 1e9 : -1;
  };
  EXPECT_DOUBLE_EQ(bandwidth("NVIDIA A100-SXM4-40GB"), 1555);
  EXPECT_DOUBLE_EQ(bandwidth("NVIDIA A100-PCIE-40GB"), 1555);
  EXPECT_DOUBLE_EQ(bandwidth("NVIDIA A100 80GB PCIe"), 1935);
  EXPECT_DOUBLE_EQ(bandwidth("NVIDIA H100 80GB HBM3"), 3352);
  EXPECT_DOUBLE_EQ(bandwidth("NVIDIA H100 PCIe"), 2039);
  EXPECT_DOUBLE_EQ(bandwidth("NVIDIA H100 NVL"), 3900);
  EXPECT_DOUBLE_EQ(bandwidth("NVIDIA H200"), 4800);
  EXPECT_DOUBLE_EQ(bandwidth("NVIDIA B200"), 7700);
  EXPECT_DOUBLE_EQ(bandwidth("Tesla V100-SXM2-16GB"), 900);
  EXPECT_DOUBLE_EQ(bandwidth("Tesla V100S-PCIE-32GB"), 1134);

  const auto half = [](const char* name) {
    const auto peaks = find_device_peaks(name);
    return peaks ? peaks->peak(Dtype::kFp16) / 1e12 : -1;
  };
  EXPECT_DOUBLE_EQ(half("Tesla V100-SXM2-32GB"), 125);
  EXPECT_DOUBLE_EQ(half("Tesla V100-PCIE-32GB"), 112);
  EXPECT_DOUBLE_EQ(half("NVIDIA H100 80GB HBM3"), 989.4);
  EXPECT_DOUBLE_EQ(half("NVIDIA H100 PCIe"), 756);
  EXPECT_DOUBLE_EQ(half("NVIDIA L40"), 181.05);
  EXPECT_DOUBLE_EQ(half("NVIDIA L40S"), 362.05);
  EXPECT_DOUBLE_EQ(half("NVIDIA B200"), 2250);
  EXPECT_DOUBLE_EQ(half("NVIDIA GB200"), 2500);
  EXPECT_DOUBLE_EQ(half("AMD Instinct MI250X"), 191.5);
  EXPECT_DOUBLE_EQ(half("AMD Instinct MI300X"), 1307.4);
}

// Figures that NVIDIA's whitepapers print for these cards; the table computes them.
TEST(DevicePeaks, ComputesWhatTheWhitepapersPrint) {
  struct Printed {
    const char* name;
    Dtype dtype;
    double tera;
  };
  for (const auto& [name, dtype, tera] : {
           Printed{"NVIDIA GeForce RTX 2080 Ti", Dtype::kFp32, 13.4},
           Printed{"NVIDIA GeForce RTX 2080 Ti", Dtype::kFp16, 53.8},
           Printed{"NVIDIA GeForce RTX 2080 Ti", Dtype::kInt8, 215.2},
           Printed{"Quadro RTX 8000", Dtype::kFp32, 16.3},
           Printed{"Quadro RTX 8000", Dtype::kFp16, 130.5},
           Printed{"NVIDIA TITAN RTX", Dtype::kFp16, 130.5},
           Printed{"NVIDIA GeForce RTX 3090", Dtype::kFp32, 35.6},
           Printed{"NVIDIA GeForce RTX 3090", Dtype::kTf32, 35.6},
           Printed{"NVIDIA GeForce RTX 3090", Dtype::kBf16, 71.2},
           Printed{"NVIDIA GeForce RTX 3090", Dtype::kInt8, 284.7},
           Printed{"NVIDIA RTX A6000", Dtype::kFp32, 38.7},
           Printed{"NVIDIA RTX A6000", Dtype::kTf32, 77.4},
           Printed{"NVIDIA RTX A6000", Dtype::kFp16, 154.8},
           Printed{"NVIDIA A10", Dtype::kFp16, 125},
           Printed{"NVIDIA A40", Dtype::kTf32, 74.8},
           Printed{"NVIDIA A40", Dtype::kBf16, 149.7},
           Printed{"NVIDIA A40", Dtype::kInt8, 299.3},
           Printed{"NVIDIA GeForce RTX 4090", Dtype::kFp32, 82.6},
           Printed{"NVIDIA GeForce RTX 4090", Dtype::kFp16, 165.2},
           Printed{"NVIDIA GeForce RTX 4090", Dtype::kFp8, 660.6},
           Printed{"NVIDIA RTX 6000 Ada Generation", Dtype::kFp32, 91.1},
           Printed{"NVIDIA RTX 6000 Ada Generation", Dtype::kFp16, 364.2},
           Printed{"NVIDIA GeForce RTX 5090", Dtype::kFp32, 104.8},
           Printed{"NVIDIA GeForce RTX 5090", Dtype::kBf16, 209.5},
           Printed{"NVIDIA GeForce RTX 5090", Dtype::kFp4, 1676},
           Printed{"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", Dtype::kFp16, 503.8},
       }) {
    const auto peaks = find_device_peaks(name);
    ASSERT_TRUE(peaks) << name;
    EXPECT_NEAR(peaks->peak(dtype) / 1e12, tera, 0.004 * tera) << name << ' ' << dtype_name(dtype);
  }
}

TEST(DevicePeaks, KnowsNothingOfOthers) {
  for (const char* name :
       {"", "NVIDIA ", "NVIDIA", "A100", "NVIDIA A100", "NVIDIA H100", "NVIDIA GeForce GTX 1080 Ti",
        "NVIDIA A100-SXM4-80GB MIG 3g.40gb", "NVIDIA A100-SXM4-80GB ", "nvidia a100-sxm4-80gb",
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA NVIDIA A30", "GRID A100D-80C",
        "NVIDIA H20-3e", "AMD Instinct MI250X / MI250", "Intel(R) Data Center GPU Max 1550"}) {
    EXPECT_FALSE(find_device_peaks(name)) << name;
  }
}

TEST(DevicePeaks, TakesNamesOfOlderDrivers) {
  EXPECT_TRUE(find_device_peaks("A100-SXM4-40GB"));
  EXPECT_TRUE(find_device_peaks("GeForce RTX 2080 Ti"));
  EXPECT_TRUE(find_device_peaks("Tesla T4"));
}

// One name, two devices: the memory tells.
TEST(DevicePeaks, AsksForTheMemoryWhereANameIsNotEnough) {
  const char* name = "NVIDIA GeForce RTX 3080";
  EXPECT_FALSE(find_device_peaks(name));
  EXPECT_FALSE(find_device_peaks(name, 16 * kGiB));
  const auto small = find_device_peaks(name, 10'503'258'112);  // as CUDA has reported it
  const auto large = find_device_peaks(name, 12'622'168'064);
  ASSERT_TRUE(small && large);
  EXPECT_DOUBLE_EQ(small->bytes_per_s, 760e9);
  EXPECT_DOUBLE_EQ(large->bytes_per_s, 912e9);
  EXPECT_TRUE(find_device_peaks("NVIDIA A30", 24 * kGiB));  // where it is not needed, it is ignored
}

// Cards of one name with different memory: half of an answer is better than a wrong one.
TEST(DevicePeaks, LeavesABandwidthOutThatTheNameDoesNotTell) {
  const auto peaks = find_device_peaks("NVIDIA GeForce RTX 4070");
  ASSERT_TRUE(peaks);
  EXPECT_EQ(peaks->bytes_per_s, 0);
  EXPECT_GT(peaks->peak(Dtype::kBf16), 0);
}

TEST(DevicePeaks, SaysThatASimulatedDeviceIsOne) {
  for (const simgpu::DeviceProfile& profile : simgpu::device_profiles()) {
    const auto peaks = find_device_peaks(profile.device_name);
    ASSERT_TRUE(peaks) << profile.device_name;
    EXPECT_TRUE(peaks->is_simulated());
    EXPECT_EQ(origin_name(peaks->origin), "simulated");
    EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kFp64), profile.fp64_flops_per_ns * 1e9);
    EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kFp32), profile.fp32_flops_per_ns * 1e9);
    EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kTf32), profile.tf32_flops_per_ns * 1e9);
    EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kFp16), profile.half_flops_per_ns * 1e9);
    EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kBf16), profile.half_flops_per_ns * 1e9);
    EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kFp8), profile.byte_flops_per_ns * 1e9);
    EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kInt8), profile.byte_flops_per_ns * 1e9);
    EXPECT_DOUBLE_EQ(peaks->bytes_per_s, profile.memory_bytes_per_ns * 1e9);
  }
}

// What must hold for every device, so that a slip of the pen shows.
TEST(DeviceTable, IsPlausible) {
  std::set<std::tuple<std::string_view, int>> seen;
  for (const DeviceRow& row : device_table()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(seen.insert({row.name, row.memory_gib}).second) << "stands there twice";
    EXPECT_FALSE(row.source.empty());
    EXPECT_EQ(row.simulated, row.name.starts_with("simulated"));
    EXPECT_GT(row.fp16, row.fp32);
    EXPECT_LE(row.fp64, row.fp32 == 0 ? row.fp64 : row.fp32);
    EXPECT_LE(row.tf32, row.fp16);
    EXPECT_TRUE(row.bf16 == 0 || row.bf16 == row.fp16);
    EXPECT_TRUE(row.fp8 == 0 || row.fp8 >= 1.9 * row.fp16);
    EXPECT_TRUE(row.fp4 == 0 || row.fp4 >= 2 * row.fp8);
    EXPECT_TRUE(row.bandwidth == 0 || (row.bandwidth >= 100 && row.bandwidth <= 10'000));
  }
}

}  // namespace
}  // namespace layertrace::roofline
