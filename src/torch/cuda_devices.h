// CUDA devices as PyTorch sees them, without any of CUDA's own headers: what works here works with
// a LibTorch for CPUs, too.
#pragma once

#include <vector>

#include "capture/device.h"
#include "record/device_record.h"

namespace layertrace {

// PyTorch can see a CUDA device.
bool has_cuda_device() noexcept;

// The calling thread's; none before the program has begun to use a device.
CurrentStream current_cuda_stream() noexcept;

// What PyTorch's allocator has given out and holds on each device in use.
std::vector<DeviceSample> sample_cuda_memory();

}  // namespace layertrace
