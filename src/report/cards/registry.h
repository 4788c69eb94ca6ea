// The metrics that there are. One function may compute several; each key has one owner, and of a
// built-in one that was overridden the old owner waits to come back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <layertrace/report.h>

namespace layertrace::cards {

struct Registered {
  MetricInfo info;
  std::shared_ptr<const MetricsFunction> function;
  std::size_t place = 0;  // among what the function gives
};

// In the order of cards.
std::vector<Registered> registered_metrics();

// What the registry starts with, of built_in.cc.
std::vector<Registered> built_in_metrics();

// What is wrong with an info, if anything is.
std::optional<Error> refuse(const MetricInfo& info);

}  // namespace layertrace::cards
