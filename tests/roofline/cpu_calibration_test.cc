// Measuring the CPU: figures that a CPU can have. How fast this one is, is no test's business.
#include "roofline/cpu_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace layertrace::roofline {
namespace {

void expect_plausible(const CpuCalibration& measured) {
  const double threads = measured.threads;
  const double fp32 = measured.peaks.of(Dtype::kFp32).vector;
  const double fp64 = measured.peaks.of(Dtype::kFp64).vector;
  EXPECT_GT(fp32, 1e6);
  EXPECT_LT(fp32, threads * 2e12);  // 4 units of 16 lanes at 8 GHz would be 1 TFLOP/s
  EXPECT_GT(fp64, 1e6);
  EXPECT_LT(fp64, threads * 1e12);
  EXPECT_GT(measured.peaks.bytes_per_s, 1e6);
  EXPECT_LT(measured.peaks.bytes_per_s, threads * 1e12);
  EXPECT_GT(measured.took_ms, 0);
}

TEST(CpuCalibration, MeasuresOneThread) {
  const auto measured = calibrate_cpu();
  ASSERT_TRUE(measured) << measured.error().message();
  EXPECT_EQ(measured->threads, 1);
  expect_plausible(*measured);
  EXPECT_EQ(measured->peaks.name, "CPU, 1 thread");
  EXPECT_EQ(measured->peaks.origin, Origin::kMeasured);
  EXPECT_THAT(measured->peaks.source, testing::HasSubstr(std::string(measured->instructions)));
  EXPECT_GT(measured->bytes_read, 0u);
}

TEST(CpuCalibration, MeasuresSeveralThreadsAtOnce) {
  const auto measured = calibrate_cpu(3);
  ASSERT_TRUE(measured) << measured.error().message();
  EXPECT_EQ(measured->threads, 3);
  EXPECT_EQ(measured->peaks.name, "CPU, 3 threads");
  expect_plausible(*measured);
}

TEST(CpuCalibration, ClaimsNothingThatItDoesNotMeasure) {
  const auto measured = calibrate_cpu();
  ASSERT_TRUE(measured);
  for (const Dtype dtype :
       {Dtype::kTf32, Dtype::kFp16, Dtype::kBf16, Dtype::kFp8, Dtype::kInt8, Dtype::kFp4}) {
    EXPECT_EQ(measured->peaks.peak(dtype), 0) << dtype_name(dtype);
  }
}

TEST(CpuCalibration, TakesNoThreadsForOne) {
  for (const int threads : {0, -4}) {
    const auto measured = calibrate_cpu(threads);
    ASSERT_TRUE(measured);
    EXPECT_EQ(measured->threads, 1);
  }
}

}  // namespace
}  // namespace layertrace::roofline
