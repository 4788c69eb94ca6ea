#include "roofline/device_peaks.h"

#include "roofline/device_table.h"

namespace layertrace::roofline {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

std::string_view without_vendor(std::string_view name) noexcept {
  for (const std::string_view vendor : {"NVIDIA ", "AMD "}) {
    if (name.starts_with(vendor)) return name.substr(vendor.size());
  }
  return name;
}

// A device reports some per cent less memory than it is sold with.
bool fits_memory(const DeviceRow& row, std::uint64_t memory_bytes) noexcept {
  if (row.memory_gib == 0) return true;
  const double gib = static_cast<double>(memory_bytes) / static_cast<double>(1u << 30);
  return gib <= row.memory_gib && gib > 0.9 * row.memory_gib;
}

DevicePeaks make_peaks(std::string_view name, const DeviceRow& row) {
  DevicePeaks peaks;
  peaks.name = name;
  peaks.origin = row.simulated ? Origin::kSimulated : Origin::kPublished;
  peaks.of(Dtype::kFp64) = {.vector = row.fp64 * kTera, .matrix = row.fp64_matrix * kTera};
  peaks.of(Dtype::kFp32) = {.vector = row.fp32 * kTera, .matrix = row.fp32_matrix * kTera};
  peaks.of(Dtype::kTf32).matrix = row.tf32 * kTera;
  peaks.of(Dtype::kFp16).matrix = row.fp16 * kTera;
  peaks.of(Dtype::kBf16).matrix = row.bf16 * kTera;
  peaks.of(Dtype::kFp8).matrix = row.fp8 * kTera;
  peaks.of(Dtype::kInt8).matrix = row.int8 * kTera;
  peaks.of(Dtype::kFp4).matrix = row.fp4 * kTera;
  peaks.bytes_per_s = row.bandwidth * kGiga;
  peaks.source = row.source;
  return peaks;
}

}  // namespace

std::string_view dtype_name(Dtype dtype) noexcept {
  constexpr std::array<std::string_view, kDtypeCount> kNames = {"fp64", "fp32", "tf32", "fp16",
                                                                "bf16", "fp8",  "int8", "fp4"};
  return kNames[static_cast<std::size_t>(dtype)];
}

std::string_view origin_name(Origin origin) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"published", "given", "measured",
                                                      "simulated"};
  return kNames[static_cast<std::size_t>(origin)];
}

std::optional<DevicePeaks> find_device_peaks(std::string_view name, std::uint64_t memory_bytes) {
  const std::string_view model = without_vendor(name);
  const auto table = device_table();
  const auto found = std::find_if(table.begin(), table.end(), [&](const DeviceRow& row) {
    return row.name == model && fits_memory(row, memory_bytes);
  });
  if (found == table.end()) return std::nullopt;
  return make_peaks(name, *found);
}

}  // namespace layertrace::roofline
