// What a trace is made of, seen from afar: its steps, the tree of its modules, and where the loss
// is computed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kineto/events.h"
#include "record/definitions.h"

namespace layertrace::kineto {

// As ProfilerStep#7 has it.
struct StepMark {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t index = 0;
  std::uint16_t thread = 0;
};

// From the end of a model's forward to the beginning of the backward.
struct LossStretch {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint16_t thread = 0;
};

struct Structure {
  std::vector<StepMark> steps;  // in order, not overlapping
  std::vector<LossStretch> losses;
  std::vector<LayerDef> layers;          // parents before children
  std::vector<LayerId> layer_of_module;  // by the module's number
  bool has_modules = false;
};

// Of events in order of time. A module's call knows no more than its class and a number; that one
// was called inside another makes the tree. A module that several call is the first one's.
Structure find_structure(const Trace& trace);

}  // namespace layertrace::kineto
