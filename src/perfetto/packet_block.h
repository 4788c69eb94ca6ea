// Packets on their way to the sink. Slices are encoded in place, into a block; all else by
// protozero, from where it comes into the block before the next slice.
#pragma once

#include <perfetto.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/byte_sink.h"

namespace layertrace {

class PacketBlock {
 public:
  using TracePacket = perfetto::protos::pbzero::TracePacket;

  explicit PacketBlock(ByteSink& out) : out_(out), block_(kBlockBytes) {}

  // A packet of this sequence for protozero to fill, before the next one is asked for.
  TracePacket* add(std::uint32_t sequence);
  // Where the next slice may be written, and up to where it was.
  template <typename Slice>
  std::uint8_t* room_for() {
    if (packets_ != 0) [[unlikely]]
      gather();
    if (used_ + Slice::kMaxBytes > block_.size()) [[unlikely]]
      flush();
    return block_.data() + used_;
  }
  void slice_done(const std::uint8_t* end) {
    used_ = static_cast<std::size_t>(end - block_.data());
  }
  // Hands all of it to the sink.
  void flush();

  void describe_track(std::uint64_t uuid, std::uint64_t parent, std::string_view name);

 private:
  static constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
  static constexpr unsigned kPacketsPerFlush = 8192;

  void gather();

  ByteSink& out_;
  std::vector<std::uint8_t> block_;  // whole packets only: a sink may stop between any two blocks
  std::size_t used_ = 0;
  protozero::HeapBuffered<perfetto::protos::pbzero::Trace> trace_;
  unsigned packets_ = 0;  // in trace_
};

}  // namespace layertrace
