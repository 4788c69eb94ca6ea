#include "core/device_profile.h"

#include <algorithm>
#include <array>

namespace simgpu {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

constexpr std::array kProfiles = {
    DeviceProfile{
        .name = "h100",
        .device_name = "simulated H100-class GPU",
        .major = 9,
        .minor = 0,
        .multiprocessors = 132,
        .threads_per_multiprocessor = 2048,
        .blocks_per_multiprocessor = 32,
        .shared_bytes_per_multiprocessor = 233472,
        .shared_bytes_per_block_optin = 232448,
        .clock_khz = 1'980'000,
        .memory_clock_khz = 2'619'000,
        .memory_bus_bits = 5120,
        .memory_bytes = 80 * kGiB,
        .l2_bytes = 50 * kMiB,
        .memory_bytes_per_ns = 3350,
        .host_bytes_per_ns = 55,
        .peer_bytes_per_ns = 400,
        .fp64_flops_per_ns = 34'000,
        .fp32_flops_per_ns = 67'000,
        .tf32_flops_per_ns = 495'000,
        .half_flops_per_ns = 990'000,
        .byte_flops_per_ns = 1'980'000,
        .launch_latency_ns = 2'500,
        .shortest_kernel_ns = 1'500,
    },
    DeviceProfile{
        .name = "laptop",
        .device_name = "simulated laptop GPU",
        .major = 8,
        .minor = 9,
        .multiprocessors = 24,
        .threads_per_multiprocessor = 1536,
        .blocks_per_multiprocessor = 24,
        .shared_bytes_per_multiprocessor = 102400,
        .shared_bytes_per_block_optin = 101376,
        .clock_khz = 2'370'000,
        .memory_clock_khz = 8'000'000,
        .memory_bus_bits = 128,
        .memory_bytes = 8 * kGiB,
        .l2_bytes = 32 * kMiB,
        .memory_bytes_per_ns = 256,
        .host_bytes_per_ns = 13,
        .peer_bytes_per_ns = 13,
        .fp64_flops_per_ns = 180,
        .fp32_flops_per_ns = 11'600,
        .tf32_flops_per_ns = 23'000,
        .half_flops_per_ns = 46'000,
        .byte_flops_per_ns = 92'000,
        .launch_latency_ns = 4'000,
        .shortest_kernel_ns = 2'000,
    },
};

}  // namespace

std::span<const DeviceProfile> device_profiles() noexcept { return kProfiles; }

const DeviceProfile* find_profile(std::string_view name) noexcept {
  const auto* found = std::find_if(kProfiles.begin(), kProfiles.end(),
                                   [&](const DeviceProfile& p) { return p.name == name; });
  return found == kProfiles.end() ? nullptr : found;
}

}  // namespace simgpu
