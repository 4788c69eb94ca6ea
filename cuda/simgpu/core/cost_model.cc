#include "core/cost_model.h"

#include <algorithm>
#include <cmath>

namespace simgpu {
namespace {

// What well-written code reaches of a published peak.
constexpr double kReached = 0.7;
// Copies have a fixed cost beside their bytes.
constexpr double kCopyStartNs = 1'200;
// What a thread of a kernel that is known by its shape alone is taken to read and write.
constexpr double kBytesPerThread = 32;

double peak(const DeviceProfile& device, NumberType type) noexcept {
  switch (type) {
    case NumberType::kFp64:
      return device.fp64_flops_per_ns;
    case NumberType::kFp32:
      return device.fp32_flops_per_ns;
    case NumberType::kTf32:
      return device.tf32_flops_per_ns;
    case NumberType::kHalf:
      return device.half_flops_per_ns;
    case NumberType::kByte:
      return device.byte_flops_per_ns;
  }
  return device.fp32_flops_per_ns;
}

std::uint64_t at_least_shortest(const DeviceProfile& device, double ns) noexcept {
  constexpr double kLongestNs = 3.6e12;  // an hour: nothing overflows on the way
  return std::max(device.shortest_kernel_ns,
                  static_cast<std::uint64_t>(std::llround(std::min(ns, kLongestNs))));
}

}  // namespace

std::uint64_t bytes_of(NumberType type) noexcept {
  switch (type) {
    case NumberType::kFp64:
      return 8;
    case NumberType::kFp32:
    case NumberType::kTf32:
      return 4;
    case NumberType::kHalf:
      return 2;
    case NumberType::kByte:
      return 1;
  }
  return 4;
}

std::uint64_t product_ns(const DeviceProfile& device, const MatrixProduct& product) noexcept {
  const auto m = static_cast<double>(product.m);
  const auto n = static_cast<double>(product.n);
  const auto k = static_cast<double>(product.k);
  const auto batch = static_cast<double>(product.batch);
  const double flops = 2 * m * n * k * batch;
  const double bytes =
      (m * k + k * n + m * n) * batch * static_cast<double>(bytes_of(product.type));
  const double arithmetic_ns = flops / (kReached * peak(device, product.type));
  const double memory_ns = bytes / (kReached * device.memory_bytes_per_ns);
  return at_least_shortest(device, std::max(arithmetic_ns, memory_ns));
}

double kernel_weight(std::string_view name) noexcept {
  struct Weight {
    std::string_view part;
    double weight;
  };
  static constexpr Weight kWeights[] = {
      {"fmha", 24},   {"flash", 24},     {"conv", 16},     {"gemm", 16},  {"multi_tensor", 8},
      {"softmax", 3}, {"norm", 3},       {"reduce", 2},    {"sort", 6},   {"scatter", 2},
      {"gather", 2},  {"index", 2},      {"embedding", 2}, {"im2col", 4}, {"col2im", 4},
      {"lstm", 4},    {"vectorized", 4},  // four elements a thread
  };
  double weight = 1;
  for (const Weight& each : kWeights) {
    if (name.find(each.part) != std::string_view::npos) weight = std::max(weight, each.weight);
  }
  return weight;
}

std::uint64_t kernel_ns(const DeviceProfile& device, double weight, KernelShape shape) noexcept {
  const double threads = static_cast<double>(shape.blocks) * static_cast<double>(shape.threads);
  const double bytes = threads * kBytesPerThread * weight;
  // A small grid leaves multiprocessors idle, and with them their share of the memory's speed.
  const double busy = std::min(1.0, static_cast<double>(shape.blocks) / device.multiprocessors);
  const double speed = kReached * device.memory_bytes_per_ns * std::max(busy, 0.02);
  return at_least_shortest(device, static_cast<double>(device.shortest_kernel_ns) + bytes / speed);
}

std::uint64_t copy_ns(const DeviceProfile& device, CopyPath path, std::uint64_t bytes) noexcept {
  double speed = device.host_bytes_per_ns;
  if (path == CopyPath::kWithin) speed = device.memory_bytes_per_ns / 2;  // read and written
  if (path == CopyPath::kPeer) speed = device.peer_bytes_per_ns;
  return static_cast<std::uint64_t>(
      std::llround(kCopyStartNs + static_cast<double>(bytes) / (kReached * speed)));
}

std::uint64_t fill_ns(const DeviceProfile& device, std::uint64_t bytes) noexcept {
  return at_least_shortest(device,
                           static_cast<double>(bytes) / (kReached * device.memory_bytes_per_ns));
}

}  // namespace simgpu
