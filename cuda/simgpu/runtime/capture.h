// Streams that are being captured: what is put into them becomes a graph instead of running.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/api.h"

namespace simgpu {

struct Capture {
  std::uint64_t id = 0;
  Stream* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  Graph* graph = nullptr;
  std::unique_ptr<Graph> owned;  // where the program did not give one
  bool invalidated = false;
  std::map<Stream*, std::vector<Node*>> tails;  // what the next in each stream waits for
};

inline bool is_capturing(const Stream& stream) noexcept {
  return stream.capture.load(std::memory_order_acquire) != nullptr;
}

// Adds a node behind what the stream has in its graph.
SIMGPU_SHARED cudaError_t keep(Stream& stream, std::unique_ptr<Node> node);

// An event's record and a stream's wait for it. The second also makes a stream part of the capture
// that the event comes from.
cudaError_t keep_record(Stream& stream, Event& event, bool external);
cudaError_t keep_wait(Stream& stream, Event& event, bool external);

// cudaSuccess unless a capture forbids this thread calls that are not safe while one goes on.
cudaError_t allowed_now();
// Likewise for what must not be asked of a stream, or of an event, that is captured.
SIMGPU_SHARED cudaError_t allowed_on(const Stream& stream);
cudaError_t allowed_on(const Event& event);

// Puts a task into a stream, or into its graph while it is captured. `effect` is what it does to
// memory. `end_ns` is when it ends, 0 for one that does not run now.
template <typename Effect>
cudaError_t submit(const Call& call, Stream& stream, const Task& task, const Effect& effect,
                   std::uint64_t* end_ns) {
  *end_ns = 0;
  if (is_capturing(stream)) [[unlikely]] {
    auto node = std::make_unique<Node>();
    node->kind = node_kind(task);
    node->task = task;
    node->effect = effect;
    return keep(stream, std::move(node));
  }
  if (const cudaError_t error = allowed_on(stream); error != cudaSuccess) return failed(error);
  const bool waits = machine().has_to_call(stream);
  if (!waits) effect();  // before it gets its time, of which the host's work is no part
  const Slot slot = machine().run(stream, task, call.correlation());
  if (waits) machine().call_later(stream, slot.start_ns, effect);
  *end_ns = slot.end_ns;
  return cudaSuccess;
}

}  // namespace simgpu
