// What happens on the simulated machine, told to who wants to know. CUPTI's stand-in is one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cost_model.h"
#include "core/timeline.h"

namespace simgpu {

struct Graph;
struct GraphExec;
struct Node;
struct Stream;

enum class Api : std::uint8_t { kRuntime, kDriver };

// One call of the program into an API, while it lasts.
struct ApiCall {
  Api api = Api::kRuntime;
  std::uint32_t id = 0;              // as CUPTI numbers the functions
  const char* function = "";         // its name
  const void* parameters = nullptr;  // as CUPTI's headers lay them out
  const char* kernel = nullptr;      // the name of what it launches
  std::uint32_t correlation = 0;
  int device = 0;
  int result = 0;                   // known when it is left
  std::uint64_t entered_at = 0;     // on the observer's clock
  std::uint64_t observer_data = 0;  // what the observer likes to keep from entry to exit
};

// Something that ran on a device.
struct Activity {
  enum class Kind : std::uint8_t { kKernel, kCopy, kFill };
  Kind kind = Kind::kKernel;
  int device = 0;
  std::uint32_t stream_id = 0;
  int priority = 0;  // of the stream
  std::uint32_t correlation = 0;
  Slot slot;
  const char* name = "";  // of a kernel; lives as long as the process
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;
  std::uint64_t bytes = 0;  // of a copy or a fill
  CopyPath path = CopyPath::kWithin;
  bool from_pageable = false;  // host memory of a copy that the runtime does not know
  bool to_pageable = false;
  bool is_async = false;
  int peer_device = 0;      // of a copy between devices: where it goes
  int value = 0;            // of a fill
  std::uint32_t graph = 0;  // of a graph's node: whose launch, and which
  std::uint64_t node = 0;
};

struct Synchronization {
  enum class Kind : std::uint8_t { kEvent, kStreamWait, kStream, kDevice };
  Kind kind = Kind::kDevice;
  int device = 0;
  std::uint32_t stream_id = 0;  // of the stream, or of the one that waits
  std::uint32_t event_id = 0;
  std::uint32_t event_record_id = 0;  // the correlation of the call that recorded it
  std::uint32_t correlation = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
};

struct EventMark {
  int device = 0;
  std::uint32_t stream_id = 0;
  std::uint32_t event_id = 0;
  std::uint32_t correlation = 0;
  std::uint64_t time_ns = 0;
};

// A whole graph that ran.
struct GraphRun {
  int device = 0;
  std::uint32_t stream_id = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  Slot slot;
};

// Something came into being, or is about to go.
struct ResourceChange {
  enum class Kind : std::uint8_t {
    kContextCreated,
    kStreamCreated,
    kStreamGoes,
    kGraphCreated,
    kGraphCloned,
    kGraphGoes,
    kNodeCreated,
    kNodeCloned,
    kDependencyCreated,
    kExecStarts,
    kExecCreated,
    kExecGoes,
  };
  Kind kind = Kind::kContextCreated;
  int device = 0;
  const Stream* stream = nullptr;
  const Graph* graph = nullptr;
  const Graph* original_graph = nullptr;
  const Node* node = nullptr;
  const Node* original_node = nullptr;
  const Node* dependency = nullptr;
  const GraphExec* exec = nullptr;
};

// Functions by their numbers, a bit each.
class FunctionSet {
 public:
  static constexpr std::uint32_t kFunctions = 1024;  // of each API; there are fewer

  bool has(Api api, std::uint32_t id) const noexcept {
    if (id >= kFunctions) return false;
    const Word word = words_[index_of(api)][id / kBits].load(std::memory_order_relaxed);
    return (word >> (id % kBits) & 1) != 0;
  }
  void set(Api api, std::uint32_t id, bool on) noexcept {
    if (id >= kFunctions) return;
    std::atomic<Word>& word = words_[index_of(api)][id / kBits];
    const Word bit = Word{1} << (id % kBits);
    if (on) {
      word.fetch_or(bit, std::memory_order_relaxed);
    } else {
      word.fetch_and(~bit, std::memory_order_relaxed);
    }
  }
  bool empty() const noexcept {
    for (const auto& api : words_) {
      for (const auto& word : api) {
        if (word.load(std::memory_order_relaxed) != 0) return false;
      }
    }
    return true;
  }

 private:
  using Word = std::uint64_t;
  static constexpr std::uint32_t kBits = 64;
  static std::size_t index_of(Api api) noexcept { return static_cast<std::size_t>(api); }

  std::array<std::array<std::atomic<Word>, kFunctions / kBits>, 2> words_{};
};

// Each is called on the thread that does it, and may not wait for the machine.
class Observer {
 public:
  virtual ~Observer() = default;
  // Whether it wants to know of calls of that function. Programs make very many of which nobody
  // does: asking must cost nothing.
  bool watches(Api api, std::uint32_t id) const noexcept { return watched_.has(api, id); }
  virtual void on_enter(ApiCall& call) = 0;
  virtual void on_leave(ApiCall& call) = 0;
  virtual void on_activity(const Activity& activity) = 0;
  virtual void on_synchronization(const Synchronization& synchronization) = 0;
  virtual void on_event(const EventMark& mark) = 0;
  virtual void on_graph_run(const GraphRun& run) = 0;
  virtual void on_resource(const ResourceChange& change) = 0;

 protected:
  FunctionSet watched_;
};

}  // namespace simgpu
