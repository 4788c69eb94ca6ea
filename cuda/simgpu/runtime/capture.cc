#include "runtime/capture.h"

#include <algorithm>
#include <mutex>

using simgpu::Capture;
using simgpu::Event;
using simgpu::failed;
using simgpu::Graph;
using simgpu::machine;
using simgpu::Node;
using simgpu::Stream;
using simgpu::stream_of;

namespace {

struct Captures {
  // A tool that is told of a node may ask about the capture.
  std::recursive_mutex mutex;
  std::map<std::uint64_t, std::unique_ptr<Capture>> active;  // by id
  std::atomic<std::size_t> count{0};
  std::uint64_t next_id = 1;
};
Captures& captures() {
  static auto* instance = new Captures;  // used while the program exits
  return *instance;
}

bool forbids(const Capture& capture) {
  const cudaStreamCaptureMode mode = simgpu::this_thread().capture_mode;
  if (mode == cudaStreamCaptureModeRelaxed || capture.mode == cudaStreamCaptureModeRelaxed)
    return false;
  const bool own = capture.thread == std::this_thread::get_id();
  return own ||
         (mode == cudaStreamCaptureModeGlobal && capture.mode == cudaStreamCaptureModeGlobal);
}

// Whether the stream is the legacy one, and would wait for a blocking stream of the capture.
bool involves(const Capture& capture, const Stream& stream) {
  if (stream.queue != simgpu::Timeline::kLegacyStream) return false;
  return std::any_of(capture.tails.begin(), capture.tails.end(), [&](const auto& each) {
    return each.first->device == stream.device && each.first->flags == cudaStreamDefault;
  });
}

void join(Capture& capture, Stream& stream, const std::vector<Node*>& nodes) {
  std::vector<Node*>& tail = capture.tails[&stream];
  for (Node* node : nodes) {
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
  stream.capture.store(&capture, std::memory_order_release);
}

bool involves_any(const Stream& stream) {
  const auto& active = captures().active;
  return std::any_of(active.begin(), active.end(),
                     [&](const auto& each) { return involves(*each.second, stream); });
}

// Whether all that other streams have in the graph comes before the origin's next.
bool is_joined(const Capture& capture) {
  std::vector<const Node*> reached;
  std::vector<const Node*> open;
  for (const auto& [stream, tail] : capture.tails) {
    if (stream == capture.origin) open.assign(tail.begin(), tail.end());
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (std::find(reached.begin(), reached.end(), node) != reached.end()) continue;
    reached.push_back(node);
    open.insert(open.end(), node->after.begin(), node->after.end());
  }
  for (const auto& [stream, tail] : capture.tails) {
    for (const Node* node : tail) {
      if (std::find(reached.begin(), reached.end(), node) == reached.end()) return false;
    }
  }
  return true;
}

cudaError_t begin(cudaStream_t handle, cudaGraph_t given, cudaStreamCaptureMode mode,
                  std::vector<Node*> dependencies) {
  Stream& stream = stream_of(handle);
  if (stream.queue == simgpu::Timeline::kLegacyStream)
    return failed(cudaErrorStreamCaptureUnsupported);
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed)
    return failed(cudaErrorInvalidValue);
  Captures& all = captures();
  const std::lock_guard lock(all.mutex);
  if (is_capturing(stream)) return failed(cudaErrorIllegalState);
  auto capture = std::make_unique<Capture>();
  capture->id = all.next_id++;
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  if (given != nullptr) {
    capture->graph = reinterpret_cast<Graph*>(given);
  } else {
    capture->owned = std::make_unique<Graph>();
    capture->owned->id = machine().new_graph_id();
    capture->graph = capture->owned.get();
    machine().tell({.kind = simgpu::ResourceChange::Kind::kGraphCreated,
                    .device = stream.device,
                    .graph = capture->graph});
  }
  capture->tails[&stream] = std::move(dependencies);
  stream.capture.store(capture.get(), std::memory_order_release);
  all.active.emplace(capture->id, std::move(capture));
  all.count.store(all.active.size());
  return cudaSuccess;
}

}  // namespace

namespace simgpu {

cudaError_t keep(Stream& stream, std::unique_ptr<Node> node) {
  const std::lock_guard lock(captures().mutex);
  Capture* capture = stream.capture.load();
  if (capture == nullptr || capture->invalidated) return failed(cudaErrorStreamCaptureInvalidated);
  std::vector<Node*>& tail = capture->tails[&stream];
  node->after = tail;
  tail = {&machine().add_node(*capture->graph, std::move(node), stream.device)};
  return cudaSuccess;
}

cudaError_t keep_record(Stream& stream, Event& event, bool external) {
  if (external) {
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::kRecordEvent;
    node->event = &event;
    return keep(stream, std::move(node));
  }
  const std::lock_guard lock(captures().mutex);
  const Capture* capture = stream.capture.load();
  if (capture == nullptr || capture->invalidated) return failed(cudaErrorStreamCaptureInvalidated);
  event.capture_id = capture->id;
  event.captured = capture->tails.at(&stream);
  return cudaSuccess;
}

cudaError_t keep_wait(Stream& stream, Event& event, bool external) {
  if (external) {
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::kWaitEvent;
    node->event = &event;
    return keep(stream, std::move(node));
  }
  Captures& all = captures();
  const std::lock_guard lock(all.mutex);
  const auto found = all.active.find(event.capture_id);
  Capture* of_stream = stream.capture.load();
  if (found == all.active.end()) {
    if (of_stream != nullptr) of_stream->invalidated = true;
    return failed(cudaErrorStreamCaptureIsolation);
  }
  Capture& capture = *found->second;
  if (of_stream != nullptr && of_stream != &capture) {
    of_stream->invalidated = capture.invalidated = true;
    return failed(cudaErrorStreamCaptureMerge);
  }
  if (stream.queue == Timeline::kLegacyStream) {
    capture.invalidated = true;
    return failed(cudaErrorStreamCaptureImplicit);
  }
  join(capture, stream, event.captured);
  return cudaSuccess;
}

cudaError_t allowed_now() {
  Captures& all = captures();
  if (all.count.load(std::memory_order_relaxed) == 0) [[likely]]
    return cudaSuccess;
  const std::lock_guard lock(all.mutex);
  cudaError_t result = cudaSuccess;
  for (const auto& [id, capture] : all.active) {
    if (!forbids(*capture)) continue;
    capture->invalidated = true;
    result = cudaErrorStreamCaptureUnsupported;
  }
  return result;
}

cudaError_t allowed_on(const Stream& stream) {
  Captures& all = captures();
  if (all.count.load(std::memory_order_relaxed) == 0) [[likely]]
    return cudaSuccess;
  const std::lock_guard lock(all.mutex);
  if (Capture* capture = stream.capture.load()) {
    capture->invalidated = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  for (const auto& [id, capture] : all.active) {
    if (!involves(*capture, stream)) continue;
    capture->invalidated = true;
    return cudaErrorStreamCaptureImplicit;
  }
  return cudaSuccess;
}

cudaError_t allowed_on(const Event& event) {
  if (event.capture_id == 0) return cudaSuccess;
  Captures& all = captures();
  const std::lock_guard lock(all.mutex);
  const auto found = all.active.find(event.capture_id);
  if (found == all.active.end()) return cudaSuccess;
  found->second->invalidated = true;
  return cudaErrorCapturedEvent;
}

}  // namespace simgpu

SIMGPU_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  SIMGPU_CALL(call, cudaStreamBeginCapture_v10000, stream, mode);
  return begin(stream, nullptr, mode, {});
}

SIMGPU_API cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                     const cudaGraphNode_t* dependencies,
                                                     const cudaGraphEdgeData* dependencyData,
                                                     std::size_t count,
                                                     cudaStreamCaptureMode mode) {
  SIMGPU_CALL(call, cudaStreamBeginCaptureToGraph_v12030, stream, graph, dependencies,
              dependencyData, count, mode);
  if (graph == nullptr || (dependencies == nullptr && count != 0))
    return failed(cudaErrorInvalidValue);
  std::vector<Node*> nodes;
  nodes.reserve(count);
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(reinterpret_cast<Node*>(dependencies[i]));
  return begin(stream, graph, mode, std::move(nodes));
}

SIMGPU_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  SIMGPU_CALL(call, cudaStreamEndCapture_v10000, stream, graph);
  if (graph == nullptr) return failed(cudaErrorInvalidValue);
  *graph = nullptr;
  Captures& all = captures();
  const std::lock_guard lock(all.mutex);
  Capture* capture = stream_of(stream).capture.load();
  if (capture == nullptr) return failed(cudaErrorIllegalState);
  if (capture->origin != &stream_of(stream)) {
    capture->invalidated = true;
    return failed(cudaErrorStreamCaptureUnmatched);
  }
  const bool own_thread = capture->thread == std::this_thread::get_id();
  if (!own_thread && capture->mode != cudaStreamCaptureModeRelaxed)
    return failed(cudaErrorStreamCaptureWrongThread);
  cudaError_t result = cudaSuccess;
  if (capture->invalidated) {
    result = cudaErrorStreamCaptureInvalidated;
  } else if (!is_joined(*capture)) {
    result = cudaErrorStreamCaptureUnjoined;
  } else {
    const bool given = capture->owned == nullptr;  // else it becomes the program's now
    *graph = reinterpret_cast<cudaGraph_t>(given ? capture->graph : capture->owned.release());
  }
  for (const auto& [each, tail] : capture->tails) each->capture.store(nullptr);
  all.active.erase(capture->id);
  all.count.store(all.active.size());
  return result == cudaSuccess ? cudaSuccess : failed(result);
}

SIMGPU_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  SIMGPU_CALL(call, cudaStreamIsCapturing_v10000, stream, status);
  if (status == nullptr) return failed(cudaErrorInvalidValue);
  *status = cudaStreamCaptureStatusNone;
  if (captures().count.load(std::memory_order_relaxed) == 0) return cudaSuccess;
  const std::lock_guard lock(captures().mutex);
  if (involves_any(stream_of(stream))) return failed(cudaErrorStreamCaptureImplicit);
  if (const Capture* capture = stream_of(stream).capture.load()) {
    *status =
        capture->invalidated ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  }
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                cudaStreamCaptureStatus* status,
                                                unsigned long long* id, cudaGraph_t* graph,
                                                const cudaGraphNode_t** dependencies,
                                                const cudaGraphEdgeData** edgeData,
                                                std::size_t* count) {
  SIMGPU_CALL(call, cudaStreamGetCaptureInfo_v12030, stream, status, id, graph, dependencies,
              edgeData, count);
  if (status == nullptr) return failed(cudaErrorInvalidValue);
  *status = cudaStreamCaptureStatusNone;
  if (edgeData != nullptr) *edgeData = nullptr;
  if (count != nullptr) *count = 0;
  if (captures().count.load(std::memory_order_relaxed) == 0) return cudaSuccess;
  const std::lock_guard lock(captures().mutex);
  if (involves_any(stream_of(stream))) return failed(cudaErrorStreamCaptureImplicit);
  const Capture* capture = stream_of(stream).capture.load();
  if (capture == nullptr) return cudaSuccess;
  *status =
      capture->invalidated ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  if (id != nullptr) *id = capture->id;
  if (graph != nullptr) *graph = reinterpret_cast<cudaGraph_t>(capture->graph);
  const std::vector<Node*>& tail = capture->tails.at(&stream_of(stream));
  if (dependencies != nullptr)
    *dependencies = reinterpret_cast<const cudaGraphNode_t*>(tail.data());
  if (count != nullptr) *count = tail.size();
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                           cudaGraphNode_t* dependencies,
                                                           const cudaGraphEdgeData* dependencyData,
                                                           std::size_t count, unsigned flags) {
  SIMGPU_CALL(call, cudaStreamUpdateCaptureDependencies_v12030, stream, dependencies,
              dependencyData, count, flags);
  const std::lock_guard lock(captures().mutex);
  Stream& captured = stream_of(stream);
  Capture* capture = captured.capture.load();
  if (capture == nullptr) return failed(cudaErrorIllegalState);
  if (dependencies == nullptr && count != 0) return failed(cudaErrorInvalidValue);
  std::vector<Node*> nodes;
  nodes.reserve(count);
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(reinterpret_cast<Node*>(dependencies[i]));
  if (flags == cudaStreamSetCaptureDependencies) capture->tails[&captured].clear();
  join(*capture, captured, nodes);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  SIMGPU_CALL(call, cudaThreadExchangeStreamCaptureMode_v10010, mode);
  if (mode == nullptr || *mode < cudaStreamCaptureModeGlobal ||
      *mode > cudaStreamCaptureModeRelaxed)
    return failed(cudaErrorInvalidValue);
  std::swap(*mode, simgpu::this_thread().capture_mode);
  return cudaSuccess;
}
