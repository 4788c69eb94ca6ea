// The side that a GPU fills: what it did, and for which scope.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <layertrace/layertrace.h>
#include <layertrace/profile.h>
#include <layertrace/result.h>

#include "capture/layer_marks.h"
#include "record/definitions.h"
#include "record/device_record.h"

namespace layertrace {

// Where the calling thread's next work for a device goes.
struct CurrentStream {
  std::int32_t device = -1;  // −1: the program has not begun to use any
  void* stream = nullptr;
};

class DeviceCapture {
 public:
  DeviceCapture() = default;
  virtual ~DeviceCapture() = default;
  DeviceCapture(const DeviceCapture&) = delete;  // threads hold its address
  DeviceCapture& operator=(const DeviceCapture&) = delete;

  // Both may be called many times, alternating.
  virtual Result<void> enable() noexcept = 0;
  virtual void disable() noexcept = 0;
  // The session is over: gives back what the vendor's library holds of ours. Threads may still call
  // push() and pop(), which then do nothing.
  virtual void close() noexcept = 0;

  // Whether it wants to know of scopes, by push() and pop().
  virtual bool takes_scopes() const noexcept { return true; }
  // The calling thread has entered a scope, or left the innermost. On hot paths; they neither wait
  // nor throw. A pop may come when nothing is enabled any more.
  virtual void push(std::uint64_t frame) noexcept = 0;
  // `outer` is the one that is innermost now, 0 for none.
  virtual void pop(std::uint64_t outer) noexcept = 0;

  // The calling thread is the writer's: it alone may be made to call the vendor's runtime, but for
  // the last drain().
  virtual void begin_writer() noexcept {}
  // Hands over what the devices have done since the last call, in no particular order. On the
  // writer's thread. With `all`, what is not yet delivered is asked for, and waited for a
  // little.
  virtual void drain(DeviceConsumer& consumer, bool all) = 0;

  // The program has begun to use a device.
  virtual bool is_in_use() const noexcept { return true; }
  // All but what the profile itself counts.
  virtual GpuHealth health() const = 0;
  // "NVIDIA H100", or "2 × NVIDIA H100".
  virtual std::string name() const = 0;
};

// What a session asks of the vendor's side.
struct DeviceRequest {
  Timing timing = Timing::kBoth;
  bool nvtx = true;
  bool require_gpu = false;
  // Of the framework; nullptr where it has none.
  CurrentStream (*current_stream)() noexcept = nullptr;
  const Definitions* definitions = nullptr;  // what layers are called; they outlive the session
};

// What it gets. Each may be missing; why stands in the notes, where a reader should know.
struct DeviceParts {
  std::shared_ptr<DeviceCapture> capture;
  std::shared_ptr<LayerMarks> marks;
  std::shared_ptr<LayerMarks> ranges;  // those of the marks that need no device
  std::vector<std::string> notes;
};

// With `require_gpu`, an error where what the GPU does cannot be recorded. Defined in cuda/.
Result<DeviceParts> make_device_parts(const DeviceRequest& request);
// Ranges for other tools alone, for a program without a GPU.
std::shared_ptr<LayerMarks> make_range_marks(const Definitions& definitions);

}  // namespace layertrace
