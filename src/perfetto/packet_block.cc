#include "perfetto/packet_block.h"

#include <algorithm>
#include <span>

#include "perfetto/format.h"

namespace layertrace {

PacketBlock::TracePacket* PacketBlock::add(std::uint32_t sequence) {
  if (packets_ == kPacketsPerFlush) flush();
  ++packets_;
  TracePacket* packet = trace_->add_packet();
  packet->set_trusted_packet_sequence_id(sequence);
  return packet;
}

// Takes what protozero has written into the block.
void PacketBlock::gather() {
  for (const auto& slice : trace_.GetSlices()) {
    const auto written = slice.GetUsedRange();
    if (used_ + written.size() > block_.size()) block_.resize(used_ + written.size());
    std::copy(written.begin, written.end, block_.data() + used_);
    used_ += written.size();
  }
  trace_.Reset();
  packets_ = 0;
}

void PacketBlock::flush() {
  if (packets_ != 0) gather();
  if (used_ != 0) out_.write(std::span(block_).first(used_));
  used_ = 0;
}

void PacketBlock::describe_track(std::uint64_t uuid, std::uint64_t parent, std::string_view name) {
  auto* track = add(format::kDefinitionSequence)->set_track_descriptor();
  track->set_uuid(uuid);
  track->set_parent_uuid(parent);
  track->set_name(name.data(), name.size());
}

}  // namespace layertrace
