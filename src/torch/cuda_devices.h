// CUDA devices as PyTorch sees them, without any of CUDA's own headers: what works here works with
// a LibTorch for CPUs, too.
#pragma once

#include <c10/core/Stream.h>

#include <optional>
#include <vector>

#include "capture/device.h"
#include "record/device_record.h"

namespace layertrace {

// PyTorch can see a CUDA device.
bool has_cuda_device() noexcept;

// The calling thread's; none before the program has begun to use a device.
CurrentStream current_cuda_stream() noexcept;

// While it lives, that stream is taken for the calling thread's: autograd's engine goes to a node's
// stream only after the node has begun. Without one, or with that of another kind of device,
// nothing changes.
class AssumedStream {
 public:
  explicit AssumedStream(const std::optional<c10::Stream>& stream) noexcept;
  ~AssumedStream();
  AssumedStream(const AssumedStream&) = delete;  // it stands for a stretch of one thread's time
  AssumedStream& operator=(const AssumedStream&) = delete;

 private:
  std::optional<c10::Stream> outer_;
};

// What PyTorch's allocator has given out and holds on each device in use.
std::vector<DeviceSample> sample_cuda_memory();

}  // namespace layertrace
