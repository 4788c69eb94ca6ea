// Records in the layout of CUPTI's headers: today's, or an older version's where that is simulated.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/config.h"
#include "core/observer.h"

namespace simgpu::cupti {

// What is known of a record without looking into it.
struct RecordHead {
  std::uint64_t ready_ns = 0;  // when what it tells of has ended, on the clock of the machine
  std::uint64_t order = 0;     // records of one order stay in it; others may overtake
  std::uint32_t size = 0;
  bool is_kernel_note = false;  // of which the record is still to be made
};

// One record on its way to the client.
struct Record {
  static constexpr std::size_t kMostBytes = 256;
  RecordHead head;
  alignas(8) std::byte bytes[kMostBytes];  // of which head.size are set

  template <typename T>
  static Record of(const T& record, std::uint64_t ready_ns, std::uint64_t order) {
    static_assert(sizeof(T) <= kMostBytes && std::is_trivially_copyable_v<T>);
    Record result;
    result.head = {ready_ns, order, sizeof(T)};
    std::memcpy(result.bytes, &record, sizeof(T));
    return result;
  }
};

// Start and end in the client's unit.
struct Span {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

// A kernel that ran. Its record has 208 bytes, most of them zeros, and the program's threads wait
// until it is kept: so this is kept instead, and the record is made from it when it is delivered.
struct KernelNote {
  Span span;
  const char* name = "";
  std::uint64_t node = 0;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  int device = 0;
  std::uint32_t stream_id = 0;
  int priority = 0;
  CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;

  KernelNote() = default;
  KernelNote(const Activity& kernel, Span when, CUpti_ActivityKind as);
};

const Config& config();
bool is_old_version();        // the fault
std::uint32_t api_version();  // as cuptiGetVersion tells it
std::uint32_t context_id(int device);

// The size of a record of that kind; 0 for one that is never made here.
std::size_t record_size(CUpti_ActivityKind kind);

// Records of one stream of a device have one order.
std::uint64_t order_of(int device, std::uint32_t stream);

Record kernel_record(const KernelNote& kernel, std::uint64_t ready_ns);
Record copy_record(const Activity& copy, Span span);
Record peer_copy_record(const Activity& copy, Span span);
Record fill_record(const Activity& fill, Span span);
CUpti_ActivityAPI api_record(const ApiCall& call, Span span, std::uint32_t thread);
CUpti_ActivityExternalCorrelation correlation_record(CUpti_ExternalCorrelationKind kind,
                                                     std::uint64_t id, std::uint32_t correlation);
Record synchronization_record(const Synchronization& synchronization, Span span);
Record event_record(const EventMark& mark, std::uint64_t time);
Record graph_record(const GraphRun& run, Span span);
Record stream_record(const Stream& stream, std::uint32_t correlation);
Record overhead_record(CUpti_ActivityOverheadKind kind, Span span, std::uint32_t thread);
Record device_record(int device);
Record context_record(int device);
Record name_record(int device);

// Where the times of a device's record stand, for a device that tells them wrongly; nullptr for
// other records.
struct TimeFields {
  std::uint64_t* start;
  std::uint64_t* end;
  std::uint32_t* correlation;
};
bool time_fields(std::byte* record, TimeFields* fields);
// Likewise for a kernel that had not ended when it was asked for.
void forget_end(std::byte* record);

// In a forked child the process has another number.
void forget_process() noexcept;

}  // namespace simgpu::cupti
