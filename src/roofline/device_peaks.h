// What a device can do at most: FLOP/s for each number format, and bytes/s to and from its memory.
//
// A layer that ran at 40 TFLOP/s is slow on one GPU and at the roof on another, and on the same GPU
// slow in bfloat16 and at the roof in float32. Nothing that runs on a GPU can be asked for these
// figures: CUDA tells clocks and multiprocessors, not what a tensor core does in a cycle, nor how
// fast it may add up. So they come from the vendors' own documents, by the name that CUDA (or HIP)
// reports, from the user, or from a measurement (cpu_calibration.h); `origin` says which.
//
//   auto peaks = find_device_peaks("NVIDIA A100-SXM4-80GB");
//   if (peaks) roof = peaks->peak(Dtype::kBf16);  // 312e12
//
// Peaks are dense: without the doubling that vendors print for structured sparsity, which no
// ordinary training uses.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <layertrace/result.h>

namespace layertrace::roofline {

// The format of a product's factors. TF32 is how float32 tensors are multiplied on tensor cores
// where the program allows it.
enum class Dtype : std::uint8_t { kFp64, kFp32, kTf32, kFp16, kBf16, kFp8, kInt8, kFp4 };
inline constexpr std::size_t kDtypeCount = 8;

// "fp64", "fp32", …
std::string_view dtype_name(Dtype dtype) noexcept;

// FLOP/s (of int8: operations/s); 0 where the device has no such unit, or where nobody says.
struct Peak {
  double vector = 0;  // on the ordinary units: CUDA cores, stream processors, SIMD
  double matrix = 0;  // on tensor cores (AMD: matrix cores)

  friend bool operator==(const Peak&, const Peak&) = default;
};

enum class Origin : std::uint8_t {
  kPublished,  // the vendor's document
  kGiven,      // the user's
  kMeasured,   // on the machine itself
  kSimulated,  // a simulated device's: the figures it was made with, nobody's GPU
};

// "published", "given", "measured", "simulated".
std::string_view origin_name(Origin origin) noexcept;

struct DevicePeaks {
  std::string name;
  Origin origin = Origin::kPublished;
  std::array<Peak, kDtypeCount> flops_per_s{};
  double bytes_per_s = 0;  // of the device's own memory; 0 where it is not known
  std::string source;      // the document, one sentence

  Peak& of(Dtype dtype) noexcept { return flops_per_s[static_cast<std::size_t>(dtype)]; }
  const Peak& of(Dtype dtype) const noexcept {
    return flops_per_s[static_cast<std::size_t>(dtype)];
  }
  // The most that a product of matrices can reach. FLOPs are counted for these alone, so this is
  // the roof that they are held against; 0 where it is not known.
  double peak(Dtype dtype) const noexcept { return std::max(of(dtype).vector, of(dtype).matrix); }
  bool is_simulated() const noexcept { return origin == Origin::kSimulated; }
};

// By the name that the driver reports, whole: "NVIDIA A100 80GB PCIe" is another device than
// "NVIDIA A100-SXM4-80GB", and a slice of one ("… MIG 3g.40gb") is none of them. Only the vendor in
// front may be missing, as older drivers have it. Some names stand for devices that differ ("NVIDIA
// GeForce RTX 3080" has 10 or 12 GB and another chip): these are found only with `memory_bytes`, as
// CUDA reports it. Nothing for any other name.
std::optional<DevicePeaks> find_device_peaks(std::string_view name, std::uint64_t memory_bytes = 0);

// A device of the user's, as JSON:
//
//   {"name": "My GPU", "fp32_tflops": 19.5, "bf16_tflops": 312, "bandwidth_gbs": 2039}
//
// `name` and one figure at least are needed. Keys: fp64_tflops and fp32_tflops (ordinary units),
// fp64_matrix_tflops and fp32_matrix_tflops (tensor or matrix cores), tf32_tflops, fp16_tflops,
// bf16_tflops, fp8_tflops, int8_tops, fp4_tflops, bandwidth_gbs (10⁹ bytes a second), source. An
// unknown key is an error: it would be a figure that silently does not count.
Result<DevicePeaks> parse_device_peaks(std::string_view json);

// The same, or the path of a file that holds it.
Result<DevicePeaks> read_device_peaks(const std::string& json_or_path);

}  // namespace layertrace::roofline
