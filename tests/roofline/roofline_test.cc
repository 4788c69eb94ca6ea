// Where work stands under the roofs: all figures computed by hand.
#include "roofline/roofline.h"

#include <gtest/gtest.h>

namespace layertrace::roofline {
namespace {

// 100 TFLOP/s and 1 TB/s: the ridge is at 100 FLOP per byte.
constexpr Roofs kRoofs{.flops_per_s = 100e12, .bytes_per_s = 1e12};

TEST(Roofline, PlacesWorkUnderTheComputeRoof) {
  // 4 GFLOP take 40 µs at least, 20 MB 20 µs; it took 80.
  constexpr Placement kAt = place({.flops = 4e9, .bytes = 20e6, .busy_ns = 80'000}, kRoofs);
  EXPECT_EQ(kAt.roof, Roof::kCompute);
  EXPECT_DOUBLE_EQ(kAt.flops_per_s, 50e12);
  EXPECT_DOUBLE_EQ(kAt.bytes_per_s, 0.25e12);
  EXPECT_DOUBLE_EQ(kAt.intensity, 200);
  EXPECT_DOUBLE_EQ(kAt.ridge, 100);
  EXPECT_DOUBLE_EQ(kAt.attainable_flops_per_s, 100e12);
  EXPECT_DOUBLE_EQ(kAt.least_ns, 40'000);
  EXPECT_DOUBLE_EQ(kAt.share, 0.5);
  EXPECT_DOUBLE_EQ(kAt.unexplained_ns, 40'000);
}

TEST(Roofline, PlacesWorkUnderTheMemoryRoof) {
  // 1 GFLOP takes 10 µs at least, 40 MB 40 µs; it took 50.
  constexpr Placement kAt = place({.flops = 1e9, .bytes = 40e6, .busy_ns = 50'000}, kRoofs);
  EXPECT_EQ(kAt.roof, Roof::kMemory);
  EXPECT_DOUBLE_EQ(kAt.intensity, 25);
  EXPECT_DOUBLE_EQ(kAt.attainable_flops_per_s, 25e12);  // 25 FLOP/B × 1 TB/s
  EXPECT_DOUBLE_EQ(kAt.flops_per_s, 20e12);
  EXPECT_DOUBLE_EQ(kAt.share, 0.8);
  EXPECT_DOUBLE_EQ(kAt.unexplained_ns, 10'000);
}

TEST(Roofline, PlacesWorkWithoutFlops) {
  constexpr Placement kAt = place({.flops = 0, .bytes = 1e6, .busy_ns = 2'000}, kRoofs);
  EXPECT_EQ(kAt.roof, Roof::kMemory);
  EXPECT_EQ(kAt.intensity, 0);
  EXPECT_EQ(kAt.attainable_flops_per_s, 0);
  EXPECT_DOUBLE_EQ(kAt.share, 0.5);
  EXPECT_DOUBLE_EQ(kAt.unexplained_ns, 1'000);
}

TEST(Roofline, ShowsAPeakThatWasPassed) {
  constexpr Placement kAt = place({.flops = 4e9, .bytes = 1, .busy_ns = 20'000}, kRoofs);
  EXPECT_DOUBLE_EQ(kAt.share, 2);
  EXPECT_EQ(kAt.unexplained_ns, 0);
}

TEST(Roofline, HasNoRoofWithoutWorkTimeOrPeaks) {
  constexpr Placement kNoWork = place({.flops = 0, .bytes = 0, .busy_ns = 500}, kRoofs);
  EXPECT_EQ(kNoWork.roof, Roof::kNone);
  EXPECT_EQ(kNoWork.share, 0);
  EXPECT_EQ(kNoWork.unexplained_ns, 500);
  constexpr Placement kNoTime = place({.flops = 1, .bytes = 1, .busy_ns = 0}, kRoofs);
  EXPECT_EQ(kNoTime.roof, Roof::kNone);
  EXPECT_EQ(kNoTime.flops_per_s, 0);
  EXPECT_EQ(kNoTime.unexplained_ns, 0);
  constexpr Placement kNoPeaks = place({.flops = 1e9, .bytes = 1e6, .busy_ns = 1'000}, {});
  EXPECT_EQ(kNoPeaks.roof, Roof::kNone);
  EXPECT_EQ(kNoPeaks.share, 0);
  EXPECT_EQ(kNoPeaks.ridge, 0);
  EXPECT_DOUBLE_EQ(kNoPeaks.flops_per_s, 1e15);  // the rates do not need them
}

TEST(Roofline, DoesWithTheRoofThatIsKnown) {
  constexpr Work kWork{.flops = 4e9, .bytes = 20e6, .busy_ns = 80'000};
  constexpr Placement kCompute = place(kWork, {.flops_per_s = 100e12, .bytes_per_s = 0});
  EXPECT_EQ(kCompute.roof, Roof::kCompute);
  EXPECT_DOUBLE_EQ(kCompute.share, 0.5);
  EXPECT_EQ(kCompute.ridge, 0);
  constexpr Placement kMemory = place(kWork, {.flops_per_s = 0, .bytes_per_s = 1e12});
  EXPECT_EQ(kMemory.roof, Roof::kMemory);
  EXPECT_DOUBLE_EQ(kMemory.share, 0.25);
  EXPECT_EQ(kMemory.ridge, 0);
}

TEST(Roofline, TakesTheRoofsOfADevice) {
  const auto peaks = find_device_peaks("NVIDIA A100-SXM4-80GB");
  const Roofs roofs = roofs_of(*peaks, Dtype::kBf16);
  EXPECT_NEAR(roofs.ridge(), 153, 0.1);
  const Placement at = place({.flops = 4e9, .bytes = 6e6, .busy_ns = 25'000}, roofs);
  EXPECT_EQ(at.roof, Roof::kCompute);  // the example in the header
  EXPECT_NEAR(at.share, 0.513, 0.001);
  EXPECT_NEAR(at.unexplained_ns, 12'179, 1);
}

TEST(Roofline, NamesItsRoofs) {
  EXPECT_EQ(roof_name(Roof::kNone), "none");
  EXPECT_EQ(roof_name(Roof::kCompute), "compute");
  EXPECT_EQ(roof_name(Roof::kMemory), "memory");
}

TEST(MixedPeak, IsThatOfOneFormatAfterTheOther) {
  DevicePeaks peaks;
  peaks.of(Dtype::kFp32).vector = 10e12;
  peaks.of(Dtype::kBf16).matrix = 100e12;
  FlopsByDtype flops{};
  EXPECT_EQ(mixed_peak(flops, peaks), 0);
  flops[static_cast<std::size_t>(Dtype::kBf16)] = 9e12;
  EXPECT_DOUBLE_EQ(mixed_peak(flops, peaks), 100e12);
  flops[static_cast<std::size_t>(Dtype::kFp32)] = 1e12;  // 0.09 s + 0.1 s
  EXPECT_DOUBLE_EQ(mixed_peak(flops, peaks), 10e12 / 0.19);
  flops[static_cast<std::size_t>(Dtype::kFp8)] = 1;
  EXPECT_EQ(mixed_peak(flops, peaks), 0);
}

TEST(Utilization, IsOfTheModelAndOfAllThatWasDone) {
  // 100 TFLOP/s for 200 ms are 20 TFLOP; the model is 6 of them, 2 more were recomputed.
  constexpr Utilization kUsed = utilization(6e12, 2e12, 100e12, 200e6);
  EXPECT_DOUBLE_EQ(kUsed.mfu, 0.3);
  EXPECT_DOUBLE_EQ(kUsed.hfu, 0.4);
  constexpr Utilization kNoPeak = utilization(6e12, 0, 0, 200e6);
  EXPECT_EQ(kNoPeak.mfu, 0);
  EXPECT_EQ(kNoPeak.hfu, 0);
  EXPECT_EQ(utilization(6e12, 0, 100e12, 0).mfu, 0);
}

}  // namespace
}  // namespace layertrace::roofline
