// Steps and pauses, on a track of their own. A step begins with the first thing that happens in it:
// what comes after the last one makes no other.
#pragma once

#include <cstdint>

#include "attribute/span.h"
#include "perfetto/lane_sequences.h"
#include "perfetto/packet_block.h"

namespace layertrace {

class StepTrack {
 public:
  StepTrack(PacketBlock& packets, const Dictionary& dictionary, LaneSequences& lanes)
      : packets_(packets), dictionary_(dictionary), lanes_(lanes) {}

  void window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step);
  void step(Lane lane, std::uint64_t ns, std::uint64_t index);
  void begin_if_waiting() {
    if (is_waiting_) begin();
  }
  void end_partial(std::uint64_t ns);

 private:
  void begin();
  void await(Lane lane, std::uint64_t ns, std::uint64_t index, bool is_window);

  PacketBlock& packets_;
  const Dictionary& dictionary_;
  LaneSequences& lanes_;
  bool is_waiting_ = false;  // a step begins, if anything comes before the recording pauses
  bool is_open_ = false;
  bool is_window_ = false;
  Lane lane_ = 0;
  std::uint64_t ns_ = 0;
  std::uint64_t index_ = 0;
};

}  // namespace layertrace
