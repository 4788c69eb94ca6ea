// A trace in memory: of each event what attribution needs, a tenth of what its JSON takes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kineto/growing_array.h"
#include "kineto/names.h"
#include "record/device_record.h"
#include "record/ids.h"

namespace layertrace::kineto {

// In the order in which they are around each other where times are the same.
enum class HostKind : std::uint8_t {
  kRegion,      // of a trace that is not Kineto's
  kAnnotation,  // a record_function()
  kModule,      // a module's call
  kPass,        // a call of autograd's engine
  kOperator,
  kCall,    // of a vendor's library
  kMemory,  // a moment: what is allocated and reserved
};

struct HostEvent {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  // An operator's sequence number + 1 and its forward thread, a call's correlation, or what is
  // reserved.
  std::uint64_t detail = 0;
  std::uint32_t name = 0;  // a NameId; of a module its number; of memory its device
  std::uint16_t thread = 0;
  HostKind kind = HostKind::kOperator;
};

// An operator's numbers. 2⁴⁸ − 1 sequence numbers and 2¹⁶ threads fit; others are as none.
constexpr std::uint64_t kMostSequence = (std::uint64_t{1} << 48) - 1;
constexpr std::uint64_t pack_sequence(std::uint64_t sequence, std::uint64_t forward_thread) {
  return sequence >= kMostSequence ? 0 : (sequence + 1) | (forward_thread & 0xffffU) << 48;
}
constexpr std::uint64_t sequence_of(const HostEvent& op) { return op.detail & kMostSequence; }
constexpr std::uint32_t forward_thread_of(const HostEvent& op) {
  return static_cast<std::uint32_t>(op.detail >> 48);
}

// How a kernel was launched; the same for very many.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
  std::uint32_t shared_bytes = 0;
  std::uint32_t registers = 0;
  float occupancy = 0;

  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

inline constexpr std::uint32_t kNoCall = 0xffffffffU;

struct DeviceEvent {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t correlation = 0;
  std::uint64_t bytes = 0;
  std::uint64_t graph_node = 0;
  NameId name = kNoName;
  std::uint32_t stream = 0;
  std::uint32_t shape = 0;
  std::uint32_t order = 0;       // with which host event it is handed on
  std::uint32_t call = kNoCall;  // the host event that asked for it
  std::uint32_t flow = kNoCall;  // or else the flow that comes from there
  std::uint16_t context = 0;
  std::uint8_t device = 0;
  DeviceKind kind = DeviceKind::kKernel;
  bool is_collective = false;
  bool has_correlation = false;
  bool shares_correlation = false;  // with others, so that nothing tells which call asked for it
};

// One end of a flow between two events on the host, or from the host to a device.
struct FlowEnd {
  std::uint64_t id = 0;
  std::int64_t ns = 0;
  std::uint16_t thread = 0;
};

// What a call tells of the activity that it asked for.
struct CallShape {
  std::uint64_t correlation = 0;
  std::uint64_t bytes = 0;
  std::uint32_t shape = 0;
};

struct Thread {
  std::string name;
  std::uint64_t tid = 0;
};

struct Trace {
  Names names;
  std::vector<std::string> modules;  // "Linear_10", by number
  std::vector<Thread> threads;
  std::vector<LaunchShape> shapes;
  GrowingArray<CallShape> call_shapes;  // where activities do not tell it themselves
  GrowingArray<HostEvent> host;
  GrowingArray<DeviceEvent> device;
  GrowingArray<FlowEnd> forward_flows;   // at the forward operator
  GrowingArray<FlowEnd> backward_flows;  // at the backward's
  GrowingArray<FlowEnd> launch_flows;    // at the call
  std::int64_t end_ns = 0;
};

}  // namespace layertrace::kineto
