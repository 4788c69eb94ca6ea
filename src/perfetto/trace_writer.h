// Writes spans as a Perfetto trace, packet by packet, while the program runs. Whatever was flushed
// is a valid trace, so a program that is killed leaves a file that opens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <layertrace/profile.h>

#include "attribute/span.h"
#include "base/byte_sink.h"
#include "base/clock.h"

namespace layertrace {

class TraceWriter : public SpanSink {
 public:
  // The dictionary must hold, at each call, what the spans refer to.
  static std::unique_ptr<TraceWriter> make(const Dictionary& dictionary, ByteSink& out,
                                           const RunInfo& run);

  // The system's clocks at a moment of the recording. At its start and at its end, so that the
  // trace can be merged with one of the system's; where no clock but the trace's own is known,
  // never.
  virtual void clocks(const ClockReadings& now) = 0;
  // What the device can do, which the closing record tells.
  virtual void describe_device(const DeviceInfo& device) = 0;
  // Likewise what the optimizers' state takes, where that is known.
  virtual void describe_optimizers(std::optional<double> state_bytes) = 0;
  // A figure of the user's. The last one with a key counts.
  virtual void metric(std::uint64_t ns, const MetricValue& metric) = 0;
  // Hands everything encoded so far to the sink.
  virtual void flush() = 0;
  // The closing record: with it, the trace is whole. `health` is what the spans themselves cannot
  // tell.
  virtual void close(const Health& health, std::uint64_t end_ns) = 0;
};

// Adds a metric to a trace that is closed already.
void append_metric(ByteSink& out, std::uint64_t ns, const MetricValue& metric);

}  // namespace layertrace
