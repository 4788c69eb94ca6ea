// The figures of a run that comparisons are made of, by name.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <layertrace/profile.h>

#include "report/compare/noise.h"

namespace layertrace::comparison {

enum class MetricKind {
  kTime,     // measured step by step
  kCounted,  // the same in every run of the same program
  kMemory,   // measured, and the same but for a little
};

// What of a run may be held against another's.
struct Known {
  bool times = false;
  bool gpu = false;     // kernels, and how long they took
  bool events = false;  // no kernels, but the layers' times on the GPU, by CUDA events
  bool counted = false;
  bool memory = false;
  bool params = false;
  bool phases_for_layers = false;  // an import without modules
};
Known known_of(const Profile& profile);

struct Figure {
  Stat stat;
  bool known = false;
  std::optional<double> quiet = {};  // where nothing disturbs it; else the least of its steps
};

struct Metric {
  std::string_view name;
  std::string_view unit;
  MetricKind kind = MetricKind::kCounted;
  bool is_gpus = false;  // only of a device
  Figure (*of_layer)(const Layer&, const Known&) = nullptr;
  Figure (*of_run)(const Profile&, const Known&) = nullptr;
  std::vector<Phase> phases = {};  // that it is the time of
};

// In the order in which reports have them. Some are of the run alone.
const std::vector<Metric>& metrics();

// What it is the time of in such a run.
const std::vector<Phase>& phases_of(const Metric& metric, const Known& known);

}  // namespace layertrace::comparison
