// Reads a trace that layertrace wrote back into the spans that went in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/result.h>

#include "attribute/span.h"

namespace layertrace {

struct ReadSummary {
  RunInfo run;
  DeviceInfo device;
  std::optional<double> optimizer_state_bytes;
  std::vector<MetricValue> metrics;
  Health health;  // what the closing record says; `cut` where there is none
  std::uint64_t file_bytes = 0;
  std::uint64_t packets = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
};

// Fills `dictionary` (which must be empty) and calls `sink` in the order of the file. Spans that a
// cut file leaves open are ended as cut. Exported for the tests of src/torch, which look at single
// spans.
LAYERTRACE_API Result<ReadSummary> read_trace(const std::string& path, Dictionary& dictionary,
                                              SpanSink& sink);

}  // namespace layertrace
