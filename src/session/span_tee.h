// Hands each span to two sinks: the profile and the trace.
#pragma once

#include <cstdint>
#include <string>

#include "attribute/span.h"

namespace layertrace {

class SpanTee final : public SpanSink {
 public:
  SpanTee(SpanSink& first, SpanSink& second) : first_(first), second_(second) {}
  void open_lane(Lane lane, std::uint64_t tid, const std::string& name) override;
  void close_lane(Lane lane) override;
  void begin(Lane lane, const SpanBegin& span) override;
  void end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) override;
  void window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) override;
  void step(Lane lane, std::uint64_t ns, std::uint64_t index) override;
  void gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) override;
  void amounts(Lane lane, const AmountsSpan& span) override;
  void shapes(Lane lane, const ShapesSpan& span) override;
  void counting(Lane lane, const CountingSpan& span) override;
  void memory(Lane lane, const MemorySpan& span) override;
  void use_device(const std::string& name) override;
  void count_outside_steps() override;
  void device(const DeviceSpan& span) override;
  void launch(const LaunchSpan& span) override;
  void event_pair(const EventSpan& span) override;
  void counter(const CounterSpan& sample) override;

  void leave_out_memory() noexcept { has_memory_ = false; }

 private:
  SpanSink& first_;
  SpanSink& second_;
  bool has_memory_ = true;
};

}  // namespace layertrace
