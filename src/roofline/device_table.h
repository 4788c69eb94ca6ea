// The devices whose peaks are known, as their vendors publish them.
#pragma once

#include <span>
#include <string_view>

namespace layertrace::roofline {

// In 10¹² operations and 10⁹ bytes a second; 0 for what the device has not, or its documents do not
// say.
struct DeviceRow {
  std::string_view name;  // as CUDA or HIP reports it, without the vendor
  int memory_gib = 0;     // set where only this tells devices of one name apart
  bool simulated = false;
  double fp64 = 0;
  double fp64_matrix = 0;
  double fp32 = 0;
  double fp32_matrix = 0;
  double tf32 = 0;
  double fp16 = 0;
  double bf16 = 0;
  double fp8 = 0;
  double int8 = 0;
  double fp4 = 0;
  double bandwidth = 0;
  std::string_view source;
};

std::span<const DeviceRow> device_table() noexcept;

}  // namespace layertrace::roofline
