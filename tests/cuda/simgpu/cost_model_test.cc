#include "core/cost_model.h"

#include <gtest/gtest.h>

namespace simgpu {
namespace {

const DeviceProfile& h100() { return *find_profile("h100"); }
const DeviceProfile& laptop() { return *find_profile("laptop"); }

TEST(Cost, OfABigProductIsItsArithmetic) {
  const MatrixProduct product{.m = 8192, .n = 8192, .k = 8192, .type = NumberType::kHalf};
  const double flops = 2.0 * 8192 * 8192 * 8192;
  const auto ns = static_cast<double>(product_ns(h100(), product));
  EXPECT_GT(ns, flops / h100().half_flops_per_ns);      // no faster than the peak
  EXPECT_LT(ns, 2 * flops / h100().half_flops_per_ns);  // nor far from it
  EXPECT_GT(product_ns(laptop(), product), 10 * product_ns(h100(), product));
}

TEST(Cost, OfAThinProductIsItsMemory) {
  const MatrixProduct product{.m = 1, .n = 65536, .k = 8192, .type = NumberType::kHalf};
  const double bytes = 2.0 * (8192.0 + 65536.0 * 8192 + 65536);
  const auto ns = static_cast<double>(product_ns(h100(), product));
  EXPECT_GT(ns, bytes / h100().memory_bytes_per_ns);
  EXPECT_LT(ns, 2 * bytes / h100().memory_bytes_per_ns);
}

TEST(Cost, GrowsWithTheBatchAndShrinksWithTheNumbers) {
  MatrixProduct product{.m = 2048, .n = 2048, .k = 2048, .type = NumberType::kFp32};
  const auto single = product_ns(h100(), product);
  product.batch = 8;
  EXPECT_NEAR(static_cast<double>(product_ns(h100(), product)), 8.0 * static_cast<double>(single),
              8);
  const auto fp32 = product_ns(h100(), product);
  product.type = NumberType::kTf32;
  EXPECT_LT(product_ns(h100(), product), fp32);
  product.type = NumberType::kFp64;
  EXPECT_GT(product_ns(h100(), product), fp32);
}

TEST(Cost, OfNothingIsTheShortestKernel) {
  EXPECT_EQ(product_ns(h100(), {}), h100().shortest_kernel_ns);
  EXPECT_EQ(fill_ns(h100(), 0), h100().shortest_kernel_ns);
  EXPECT_GE(kernel_ns(h100(), kernel_weight(""), {}), h100().shortest_kernel_ns);
}

TEST(Cost, OfAKernelIsByItsGridItsBlockAndItsName) {
  const KernelShape small{.blocks = 1000, .threads = 128};
  const KernelShape big{.blocks = 100'000, .threads = 128};
  const KernelShape wide{.blocks = 1000, .threads = 1024};
  EXPECT_LT(kernel_ns(h100(), kernel_weight("add"), small),
            kernel_ns(h100(), kernel_weight("add"), big));
  EXPECT_LT(kernel_ns(h100(), kernel_weight("add"), small),
            kernel_ns(h100(), kernel_weight("add"), wide));
  EXPECT_LT(kernel_ns(h100(), kernel_weight("add"), big),
            kernel_ns(h100(), kernel_weight("softmax_warp_forward"), big));
  EXPECT_EQ(kernel_ns(h100(), kernel_weight("add"), big),
            kernel_ns(h100(), kernel_weight("add"), big));
}

TEST(Cost, OfTheBiggestGridDoesNotOverflow) {
  const KernelShape all{.blocks = std::uint64_t{1} << 62, .threads = 1024};
  EXPECT_LE(kernel_ns(laptop(), kernel_weight("gemm"), all), std::uint64_t{3'600'000'000'000});
}

TEST(Cost, OfACopyIsByItsWay) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 30;
  EXPECT_LT(copy_ns(h100(), CopyPath::kWithin, kBytes), copy_ns(h100(), CopyPath::kPeer, kBytes));
  EXPECT_LT(copy_ns(h100(), CopyPath::kPeer, kBytes), copy_ns(h100(), CopyPath::kToDevice, kBytes));
  EXPECT_EQ(copy_ns(h100(), CopyPath::kToHost, kBytes),
            copy_ns(h100(), CopyPath::kToDevice, kBytes));
  EXPECT_GT(copy_ns(h100(), CopyPath::kToHost, 1), 0u);
}

}  // namespace
}  // namespace simgpu
