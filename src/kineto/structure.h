// What a trace is made of, seen from afar: its steps, the tree of its modules, where the loss is
// computed, and where a thread waits for the backward.
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

// Of a phase that no event tells of: from the end of a model's forward to the beginning of the
// backward the loss, while others run the backward a wait for them.
struct Stretch {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint16_t thread = 0;
  Phase phase = Phase::kLoss;
};

struct Structure {
  std::vector<StepMark> steps;           // in order, not overlapping
  std::vector<Stretch> stretches;        // in order of time
  std::vector<LayerDef> layers;          // parents before children
  std::vector<LayerId> layer_of_module;  // by the module's number
  bool has_modules = false;
  // Operators that make nodes inside a node run a part of the forward again; unless most nodes have
  // such, whose backward is to be differentiated itself.
  bool recomputes = false;
};

// Of events in order of time. A module's call knows no more than its class and a number; that one
// was called inside another makes the tree. A module that several call is the first one's.
Structure find_structure(const Trace& trace);

}  // namespace layertrace::kineto
