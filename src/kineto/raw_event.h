// One event as it stands in the JSON. Views are of the text, and live until the next event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace layertrace::kineto {

// What Kineto puts into `args`, as far as it matters here. Empty where it is not there.
struct RawArgs {
  // Of what ran on a device.
  std::string_view device;
  std::string_view stream;
  std::string_view context;
  std::string_view correlation;  // also of a call that asked for it
  std::string_view registers;
  std::string_view shared_memory;
  std::string_view occupancy;
  std::string_view bytes;
  std::string_view graph_node;
  std::string_view collective;
  std::array<std::string_view, 3> grid;
  std::array<std::string_view, 3> block;
  // Of an operator.
  std::string_view sequence;
  std::string_view forward_thread;
  // Of a report of memory.
  std::string_view total_allocated;
  std::string_view device_id;
  std::string_view device_type;
  // Of metadata.
  std::string_view name;
  std::string_view labels;
};

// Goes through the members of two at once.
template <typename Visit>
void each_argument(RawArgs& to, const RawArgs& from, Visit visit) {
  constexpr std::string_view RawArgs::*kMembers[] = {
      &RawArgs::device,          &RawArgs::stream,
      &RawArgs::context,         &RawArgs::correlation,
      &RawArgs::registers,       &RawArgs::shared_memory,
      &RawArgs::occupancy,       &RawArgs::bytes,
      &RawArgs::graph_node,      &RawArgs::collective,
      &RawArgs::sequence,        &RawArgs::forward_thread,
      &RawArgs::total_allocated, &RawArgs::device_id,
      &RawArgs::device_type,     &RawArgs::name,
      &RawArgs::labels};
  for (const auto member : kMembers) visit(to.*member, from.*member);
  for (std::size_t i = 0; i < to.grid.size(); ++i) visit(to.grid[i], from.grid[i]);
  for (std::size_t i = 0; i < to.block.size(); ++i) visit(to.block[i], from.block[i]);
}

struct RawEvent {
  std::string_view ph;
  std::string_view cat;
  std::string_view name;
  std::string_view pid;
  std::string_view tid;
  std::string_view ts;
  std::string_view dur;
  std::string_view id;
  RawArgs args;
  bool has_dur = false;
};

}  // namespace layertrace::kineto
