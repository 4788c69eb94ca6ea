// What a trace tells beside what happened: clocks, the run, its tracks, and each layer and
// parameter before it is first named.
#pragma once

#include <perfetto.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/span.h"
#include "base/clock.h"
#include "perfetto/packet_block.h"

namespace layertrace {

void add_clock(perfetto::protos::pbzero::ClockSnapshot& snapshot, std::uint32_t id,
               std::uint64_t ns);

class TraceHead {
 public:
  using TrackEvent = perfetto::protos::pbzero::TrackEvent;

  TraceHead(PacketBlock& packets, const Dictionary& dictionary, RunInfo run)
      : packets_(packets), dictionary_(dictionary), run_(std::move(run)) {}

  void use_device(const std::string& name) { run_.device = name; }
  void clocks(const ClockReadings& now);
  void describe_lane(Lane lane, std::uint64_t tid, const std::string& name);

  // With the first packet that has a time: a trace begins where recording does.
  void begin(std::uint64_t ns) {
    if (!is_written_) [[unlikely]]
      write(ns);
  }
  // Before whatever may name layers that are new.
  void define_new_layers(std::uint64_t ns) {
    if (layers_defined_ != dictionary_.layers.size()) define_layers(ns);
    if (parameters_defined_ != dictionary_.parameters.size()) define_parameters(ns);
  }
  // Both.
  void prepare(std::uint64_t ns) {
    begin(ns);
    define_new_layers(ns);
  }
  TrackEvent* instant(std::uint64_t ns, std::uint64_t track, std::string_view name);
  bool is_written() const noexcept { return is_written_; }

 private:
  struct PendingLane {
    Lane lane;
    std::uint64_t tid;
    std::string name;
  };
  void write(std::uint64_t ns);
  void write_clocks(const ClockReadings& now);
  void write_lane(const PendingLane& described);
  void define_layers(std::uint64_t ns);
  void define_parameters(std::uint64_t ns);

  PacketBlock& packets_;
  const Dictionary& dictionary_;
  RunInfo run_;
  bool is_written_ = false;
  std::optional<ClockReadings> first_clocks_;  // before it is written, as the lanes
  std::vector<PendingLane> pending_lanes_;
  std::size_t layers_defined_ = 0;
  std::size_t parameters_defined_ = 0;
};

}  // namespace layertrace
