// The end of a fold: sums and series become a Profile.
#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "attribute/fold.h"
#include "attribute/parameter_table.h"

namespace layertrace {

void add_closing(Health& health, const Health& closing) {
  health.cut = closing.cut;
  health.emitted = closing.emitted;
  health.recorded = closing.recorded;
  health.dropped = closing.dropped;
  health.scope_cost_ns = closing.scope_cost_ns;
  health.op_cost_ns = closing.op_cost_ns;
  health.writer_cpu_ns = closing.writer_cpu_ns;
  health.tracing_share = closing.tracing_share;
  health.source = closing.source;
  health.rejected = closing.rejected;
  for (const Unattributed& group : closing.rejected) health.activities += group.count;
  const GpuHealth told = health.gpu;  // by the spans
  health.gpu = closing.gpu;
  health.gpu.outside_steps = told.outside_steps;
  health.gpu.event_pairs = told.event_pairs;
  health.gpu.early = told.early;
  health.gpu.earlier_graphs = told.earlier_graphs;
  health.notes.insert(health.notes.end(), closing.notes.begin(), closing.notes.end());
}

Profile Fold::finish(std::uint64_t end_ns) {
  Profile profile;
  // What came after the last step() is no step, unless there is no other.
  if (!open_steps_.empty() && open_steps_.back().end_ns == 0) {
    OpenStep& rest = open_steps_.back();
    if (table_.steps() == 0 && open_steps_.size() == 1) {
      profile.steps_marked = false;
      // Of the threads, the one that had most to do stands for the whole.
      const auto busiest =
          std::max_element(lanes_.begin(), lanes_.end(), [](const auto& a, const auto& b) {
            return std::accumulate(a.step_ns.begin(), a.step_ns.end(), std::uint64_t{0}) <
                   std::accumulate(b.step_ns.begin(), b.step_ns.end(), std::uint64_t{0});
          });
      const std::uint64_t last_ns = busiest == lanes_.end() ? 0 : busiest->last_ns;
      if (busiest != lanes_.end()) rest.phase_ns = busiest->step_ns;
      rest.end_ns = std::max({end_ns, rest.start_ns + 1, last_ns});
      device_idle_.end_step(rest.end_ns, busiest == lanes_.end() ? 0 : busiest->tid);
      memory_.end_step();
      kernels_.merge(rest_kernels_);
    } else {
      if (counts_outside_steps_) {
        kernels_.merge(rest_kernels_, /*outside=*/true);
        count_outside(rest.sums);
      } else {
        note_rest(rest.sums);
      }
      open_steps_.pop_back();
      device_idle_.drop_last_step();
    }
  }
  while (!open_steps_.empty()) fold_oldest();
  table_.flush();
  if (counts_outside_steps_) count_outside(nowhere_);

  fill_layers(profile);
  if (steps_without_mark_ != 0) {
    notes_.push_back(std::to_string(steps_without_mark_) +
                     " ends of steps were dropped: each such step is part of the one after it");
  }
  note_modules_not_entered(profile);
  for (std::size_t p = 0; p < kPhaseCount; ++p)
    profile.outside[p] = table_.outside(static_cast<Phase>(p));
  profile.steps.reserve(steps_.size());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    profile.steps.push_back(
        as_step(steps_[i], has_device_ ? std::move(step_devices_[i]) : std::vector<DeviceStep>()));
  }
  profile.step_count = table_.steps();
  profile.step_ns = table_.step_ns();
  profile.kernels = kernels_.kernels(dictionary_.names);
  amounts_.fill(profile, dictionary_);
  memory_.fill(profile);
  for (std::string& note : memory_.notes()) notes_.push_back(std::move(note));
  operator_times_.fill(profile.operators, dictionary_,
                       static_cast<double>(std::max<std::uint64_t>(1, table_.steps())));
  shapes_.fill(profile, dictionary_.names);
  profile.idle = device_idle_.idle(table_.steps());
  fill_health(profile.health);
  return profile;
}

void Fold::count_outside(StepSums& outside) {
  outside_window_ += outside.activities.total;
  activities_.merge(outside.activities);
  nodes_.merge(outside.nodes);
}

void Fold::note_rest(StepSums& rest) {
  const std::uint64_t activities = rest.activities.total;
  const std::uint64_t count = activities != 0 ? activities : rest.calls() + rest.nodes.total;
  if (count == 0) return;
  const std::string what = activities != 0 ? (count == 1 ? " activity" : " activities")
                                           : (count == 1 ? " scope or node" : " scopes and nodes");
  notes_.push_back(std::to_string(count) + what +
                   " after the last step() belong to no step and are left out");
}

void Fold::fill_layers(Profile& profile) const {
  profile.layers.reserve(dictionary_.layers.size());
  for (std::size_t i = 0; i < dictionary_.layers.size(); ++i) {
    const LayerDef& def = dictionary_.layers[i];
    Layer layer;
    layer.path = def.path;
    layer.name = def.name;
    layer.type = def.type;
    layer.parent = def.parent == kNoLayer ? -1 : static_cast<int>(layertrace::index(def.parent));
    layer.registered = def.registered;
    layer.shared_with = def.shared_with;
    layer.kernel_size = def.kernel_size;
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
      const std::size_t s = i * kPhaseCount + p;
      if (!table_.has(s)) continue;
      layer.phases[p] = table_.stats(s);
      layer.ran = true;
      // A module's backward is no call of it; a node that stands for a layer is called.
      const bool is_call = static_cast<Phase>(p) != Phase::kBackward || layer.type == "operator";
      if (is_call) layer.calls += layer.phases[p].calls.mean;
    }
    if (layer.parent >= 0) {
      profile.layers[static_cast<std::size_t>(layer.parent)].children.push_back(
          static_cast<int>(i));
    }
    profile.layers.push_back(std::move(layer));
  }
  fill_parameters(profile, dictionary_);
}

// A module without a scope in its forward: its layers are right, but what it does between them is
// nobody's, or that of the module around it. Its user should know that one line mends it.
void Fold::note_modules_not_entered(const Profile& profile) {
  const Ledger& ledger = activities_.total != 0 ? activities_ : nodes_;
  const Cause cause = activities_.total != 0 ? Cause::kNoScope : Cause::kMadeOutside;
  const bool some_is_nobodys = ledger.by_cause[static_cast<std::size_t>(cause)].count != 0;
  for (const Layer& layer : profile.layers) {
    // A phase, which stands for a layer in some imported traces, is no module.
    const bool is_container = layer.type == "Sequential" || layer.type == "ModuleList" ||
                              layer.type == "ModuleDict" || layer.type == "phase" ||
                              layer.type == "step";
    const bool children_were_called = std::any_of(
        layer.children.begin(), layer.children.end(),
        [&](int child) { return profile.layers[static_cast<std::size_t>(child)].calls != 0; });
    if (is_container || !layer.registered || layer.calls != 0 || !children_were_called) continue;
    if (layer.parent < 0 && !some_is_nobodys) continue;
    std::string note = layer.parent < 0 ? layer.name : layer.path + " (" + layer.type + ")";
    note += " itself was never entered, only layers of it: what it does between them is ";
    if (inferred_ != 0) {
      note += "inferred, and after the last of them nobody's";
    } else {
      note += layer.parent < 0 ? "nobody's" : "that of the module around it";
    }
    note += ". Call the module itself; one in C++ needs a ModuleScope in its forward";
    notes_.push_back(std::move(note));
  }
}

void Fold::fill_health(Health& health) const {
  health.activities = activities_.total;
  health.activity_ns = activities_.total_ns;
  health.unattributed = causes(activities_);
  std::uint64_t missing_ns = 0;
  for (const Unattributed& each : health.unattributed) missing_ns += each.ns;
  if (activities_.total_ns != 0) {
    health.attributed_share =
        1.0 - static_cast<double>(missing_ns) / static_cast<double>(activities_.total_ns);
  }
  health.inferred = inferred_;
  health.inferred_ns = inferred_ns_;
  health.nodes = nodes_.total;
  health.unattributed_nodes = causes(nodes_);
  health.cut_scopes = cut_scopes_;
  health.thrown_scopes = thrown_scopes_;
  health.gpu.outside_steps = outside_window_;
  health.gpu.event_pairs = event_pairs_;
  health.gpu.early = early_;
  health.gpu.earlier_graphs = earlier_graphs_;
  health.notes = notes_;
}

std::vector<Unattributed> Fold::causes(const Ledger& ledger) const {
  std::vector<Unattributed> result;
  for (std::size_t i = 0; i < kCauseCount; ++i) {
    const Ledger::Entry& entry = ledger.by_cause[i];
    if (entry.count == 0) continue;
    Unattributed cause{std::string(cause_text(static_cast<Cause>(i))), entry.count, entry.ns, {}};
    for (const auto& [name, count] : entry.names) {
      cause.names.push_back(
          {name < dictionary_.names.size() ? dictionary_.names[name] : "", count});
    }
    std::sort(cause.names.begin(), cause.names.end(), [](const auto& a, const auto& b) {
      return std::tie(b.count, a.name) < std::tie(a.count, b.name);
    });
    result.push_back(std::move(cause));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.ns > b.ns; });
  return result;
}

}  // namespace layertrace
