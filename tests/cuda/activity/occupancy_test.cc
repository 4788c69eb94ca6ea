// The limits are those of the table "Technical Specifications per Compute Capability" in NVIDIA's
// CUDA C++ Programming Guide; the reserved KB of a block is in the same guide's sections on compute
// capability 8.x and 9.0. What is expected was worked out by the rules of NVIDIA's occupancy
// calculator (CUDA_Occupancy_Calculator.xls): registers go to warps in units of 256, warps by four.
#include "activity/occupancy.h"

#include <gtest/gtest.h>

namespace layertrace::cuda {
namespace {

constexpr std::uint32_t kKb = 1024;
constexpr MultiprocessorLimits kSm80{2048, 32, 65536, 164 * kKb, kKb};
constexpr MultiprocessorLimits kSm86{1536, 16, 65536, 100 * kKb, kKb};
constexpr MultiprocessorLimits kSm90{2048, 32, 65536, 228 * kKb, kKb};

TEST(Occupancy, IsFullWhereNothingLimits) {
  EXPECT_FLOAT_EQ(occupancy(kSm80, {256, 32, 0}), 1);
  EXPECT_FLOAT_EQ(occupancy(kSm90, {1024, 32, 0}), 1);
  EXPECT_FLOAT_EQ(occupancy(kSm86, {512, 40, 0}), 1);
}

TEST(Occupancy, IsLimitedByRegisters) {
  EXPECT_FLOAT_EQ(occupancy(kSm80, {256, 64, 0}), 32 / 64.0F);
  EXPECT_FLOAT_EQ(occupancy(kSm80, {256, 128, 0}), 16 / 64.0F);
  EXPECT_FLOAT_EQ(occupancy(kSm80, {128, 255, 0}), 8 / 64.0F);
  // 51 warps' registers are there, 48 by fours: one block of 32 warps.
  EXPECT_FLOAT_EQ(occupancy(kSm80, {1024, 40, 0}), 32 / 64.0F);
  // 21 warps, 20 by fours: three blocks of six.
  EXPECT_FLOAT_EQ(occupancy(kSm90, {192, 96, 0}), 18 / 64.0F);
}

TEST(Occupancy, IsLimitedByBlocks) {
  EXPECT_FLOAT_EQ(occupancy(kSm80, {32, 16, 0}), 32 / 64.0F);
  EXPECT_FLOAT_EQ(occupancy(kSm86, {32, 16, 0}), 16 / 48.0F);
  EXPECT_FLOAT_EQ(occupancy(kSm86, {1024, 16, 0}), 32 / 48.0F);  // a second one has no room
}

TEST(Occupancy, IsLimitedBySharedMemory) {
  EXPECT_FLOAT_EQ(occupancy(kSm80, {256, 32, 48 * kKb}), 3 * 8 / 64.0F);  // 49 KB with the reserved
  EXPECT_FLOAT_EQ(occupancy(kSm90, {256, 32, 48 * kKb}), 4 * 8 / 64.0F);
  EXPECT_FLOAT_EQ(occupancy(kSm90, {128, 32, 227 * kKb}), 4 / 64.0F);  // the most a block may have
  EXPECT_FLOAT_EQ(occupancy(kSm80, {128, 32, 163 * kKb}), 4 / 64.0F);
}

TEST(Occupancy, CountsABrokenWarpAsWhole) {
  EXPECT_FLOAT_EQ(occupancy(kSm80, {33, 32, 0}), 1);  // 32 blocks of two warps
  EXPECT_FLOAT_EQ(occupancy(kSm80, {1, 32, 0}), 32 / 64.0F);
}

TEST(Occupancy, IsNothingWhereItDoesNotFitOrIsNotKnown) {
  EXPECT_EQ(occupancy(kSm80, {1024, 255, 0}), 0);
  EXPECT_EQ(occupancy(kSm80, {256, 32, 164 * kKb}), 0);
  EXPECT_EQ(occupancy({}, {256, 32, 0}), 0);
  EXPECT_EQ(occupancy(kSm80, {}), 0);
}

}  // namespace
}  // namespace layertrace::cuda
