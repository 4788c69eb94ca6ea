// Runs side by side: what of the total, of each layer and of each kernel changed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/compare/metrics.h"
#include "report/compare/noise.h"
#include "report/compare/quiet.h"
#include "report/compare/run_metrics.h"

namespace layertrace {
namespace comparison {
namespace {

constexpr std::array<std::string_view, 9> kVerdicts = {
    "unknown", "same", "within noise", "faster", "slower", "less", "more", "better", "worse"};

Verdict judge_count(double before, double after, double tolerance) {
  if (before == after) return Verdict::kSame;
  if (std::abs(after - before) <= tolerance * std::abs(before)) return Verdict::kWithinNoise;
  return after > before ? Verdict::kMore : Verdict::kLess;
}

bool lie_apart(const Stat& a, const Stat& b) { return a.max < b.min || b.max < a.min; }

// What times are of: they are compared with their like only.
std::string clock_of(const Profile& profile) {
  if (!profile.run.simulated.empty()) return "a simulated GPU";
  return profile.run.device.empty() ? "the host" : "a GPU";
}

// By their names, with as much of their folders as it takes.
std::vector<std::string> short_names(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const std::string& file : files) names.push_back(std::filesystem::path(file).filename());
  std::vector<std::string> sorted;
  std::ranges::copy_if(names, std::back_inserter(sorted),
                       [](const std::string& name) { return !name.empty(); });
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) == sorted.end() ? names : files;
}

std::vector<std::string> names_of(const std::vector<Profile>& runs, const CompareOptions& options) {
  const std::vector<std::string> files = short_names(options.files);
  const auto of_this_name = [&](const std::string& name) {
    return std::ranges::count_if(runs, [&](const Profile& run) { return run.run.name == name; });
  };
  std::vector<std::string> names;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunInfo& run = runs[i].run;
    const bool has_file = i < files.size() && !files[i].empty();
    const bool has_own = !run.name.empty() && (!has_file || of_this_name(run.name) == 1);
    std::string name = i < options.names.size() ? options.names[i]
                       : has_own                ? run.name
                       : has_file               ? files[i]
                                                : run.program;
    // Of two with one name, the second is told apart.
    const auto is_taken = [&](const std::string& each) {
      return std::ranges::find(names, each) != names.end();
    };
    if (name.empty() || is_taken(name)) {
      if (!name.empty()) name += ' ';
      name += fmt::format("#{}", i + 1);
    }
    names.push_back(std::move(name));
  }
  return names;
}

class Comparer {
 public:
  Comparer(const std::vector<Profile>& runs, const CompareOptions& options)
      : runs_(runs), options_(options) {
    out_.names = names_of(runs, options);
    for (const Profile& run : runs) {
      known_.push_back(known_of(run));
      out_.simulated.push_back(run.run.simulated);
    }
    leave_out_what_differs_in_kind();
    leave_out_what_is_timed_otherwise();
    note_differences();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      quiet_.emplace_back(runs[i]);
      host_noise_.emplace_back(host_pieces(runs[0], runs[i]));
      device_noise_.emplace_back(device_pieces(runs[0], runs[i], known_[i]));
    }
  }

  Comparison compare() {
    add_totals();
    compare_metrics(runs_, out_);
    add_layers();
    add_kernels();
    return std::move(out_);
  }

 private:
  // ---- What can be compared ----

  void leave_out_what_differs_in_kind() {
    if (runs_.empty()) return;
    const std::string first = clock_of(runs_.front());
    const auto differs = [&](const Profile& run) { return clock_of(run) != first; };
    const auto other = std::ranges::find_if(runs_, differs);
    if (other == runs_.end()) return;
    for (Known& known : known_) known.times = known.gpu = known.events = known.memory = false;
    out_.notes.push_back(fmt::format(
        "{} ran on {}, {} on {}: times, kernels and memory are not compared, only what was counted",
        out_.names.front(), first, out_.names[static_cast<std::size_t>(other - runs_.begin())],
        clock_of(*other)));
  }

  // Times of kernels and by events are of different things.
  void leave_out_what_is_timed_otherwise() {
    const bool has_kernels = std::ranges::any_of(known_, &Known::gpu);
    const bool has_events = std::ranges::any_of(known_, &Known::events);
    if (!has_kernels || !has_events) return;
    for (Known& known : known_) known.gpu = known.events = false;
    out_.notes.emplace_back(
        "some of the runs were timed by kernels, others by CUDA events alone: what the GPU did is "
        "not compared");
  }

  void note_differences() {
    note_difference("on different devices", [](const RunInfo& run) { return run.device; });
    note_difference("on different processors", [](const RunInfo& run) { return run.cpu; });
    note_difference("with different versions of torch",
                    [](const RunInfo& run) { return run.torch_version; });
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const Profile& run = runs_[i];
      if (run.run.summary) {
        out_.notes.push_back(out_.names[i] + " is a summary: it has no times");
      } else if (run.step_count == 0) {
        out_.notes.push_back(out_.names[i] + " has no recorded step");
      } else if (run.step_count == 1) {
        out_.notes.push_back(out_.names[i] +
                             " has one recorded step: how much its times vary is not known");
      }
      if (!run.run.simulated.empty()) {
        out_.notes.push_back(fmt::format("{} ran on a {}: no time is a real GPU's", out_.names[i],
                                         run.run.simulated));
      }
    }
  }

  template <typename Read>
  void note_difference(const char* what, Read read) {
    std::vector<std::string> values;
    for (const Profile& run : runs_) {
      const std::string value = read(run.run);
      if (!value.empty() && std::ranges::find(values, value) == values.end())
        values.push_back(value);
    }
    if (values.size() > 1)
      out_.notes.push_back(fmt::format("the runs were made {}: {}", what, fmt::join(values, ", ")));
  }

  // ---- Rows ----

  // Nothing where no two runs have the figure, or there is nothing of it in any.
  std::optional<ComparedRow> row_of(const Metric& metric, const std::vector<Figure>& figures,
                                    bool is_total) const {
    ComparedRow row;
    row.metric = metric.name;
    row.unit = metric.unit;
    bool is_worth_it = false;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const Figure& figure = figures[i];
      ComparedFigure& side = row.runs.emplace_back();
      side.known = figure.known;
      if (!figure.known) continue;
      side.value = middle_of(figure.stat);
      side.low = std::min(figure.stat.min, side.value);
      side.high = std::max(side.value, std::min(figure.stat.max, 2 * side.value - side.low));
      const double first = middle_of(figures[0].stat);
      is_worth_it |= i != 0 && figures[0].known && (side.value != 0 || first != 0);
      if (i == 0 || !figures[0].known) continue;
      side.change = relative(first, side.value);
      judge(metric, figures[0], figure, i, is_total, side);
    }
    if (!is_worth_it) return std::nullopt;
    return row;
  }

  // Times are judged when all of their kind are known.
  void judge(const Metric& metric, const Figure& before, const Figure& after, std::size_t run,
             bool is_total, ComparedFigure& side) const {
    switch (metric.kind) {
      case MetricKind::kTime: {
        if (runs_[0].step_count < 2 || runs_[run].step_count < 2) return;
        const auto time_of = [&](const Figure& figure, std::size_t of) {
          const double middle = middle_of(figure.stat);
          const double quiet = std::min(middle, figure.quiet.value_or(figure.stat.min));
          return TimeOfRun{quiet * kNsPerMs, middle * kNsPerMs, runs_[of].step_count};
        };
        const RunNoise& noise = (metric.is_gpus ? device_noise_ : host_noise_)[run];
        // What all layers changed by is the machine's doing, unless the whole has changed.
        const bool is_whole = is_total || has_changed_total(metric.is_gpus, run);
        const TimeOfRun old_time = time_of(before, 0);
        const TimeOfRun new_time = time_of(after, run);
        double scatter = noise.scatter(std::sqrt(old_time.quiet * new_time.quiet));
        // Where most of the work changed, each piece by another factor, that looks like scatter.
        if (is_total && lie_apart(before.stat, after.stat))
          scatter = std::min(scatter, noise.scatter_against(new_time.quiet - old_time.quiet));
        const double common = is_whole ? 0 : noise.common(phases_of(metric, known_[run]));
        side.chance = chance_of(old_time, new_time, scatter, common, options_.min_change);
        // So few steps that no statistics believe it; but no equal runs lie so far apart.
        if (is_total && lie_apart(before.stat, after.stat) && is_beyond_doubt(old_time, new_time))
          side.chance = 0;
        side.verdict = Verdict::kWithinNoise;
        return;
      }
      case MetricKind::kCounted:
        side.verdict = judge_count(before.stat.mean, after.stat.mean, 1e-9);
        return;
      case MetricKind::kMemory:
        side.verdict = judge_count(before.stat.mean, after.stat.mean, kMemoryTolerance);
        return;
    }
  }

  bool has_changed_total(bool is_gpus, std::size_t run) const {
    return std::ranges::any_of(out_.rows, [&](const ComparedRow& row) {
      return row.kind == "total" && row.unit == "ms" && row.metric.starts_with("gpu") == is_gpus &&
             is_change(row.runs[run].verdict);
    });
  }

  // The rows from this one on: of totals and of layers each, equal runs may differ in half of the
  // share of comparisons that is allowed for.
  void judge_times(std::vector<ComparedRow>& rows) const {
    const auto each_time = [&](const auto& visit) {
      for (ComparedRow& row : rows) {
        if (row.unit != "ms") continue;
        for (ComparedFigure& side : row.runs) {
          if (side.verdict != Verdict::kUnknown) visit(side);
        }
      }
    };
    std::vector<double> chances;
    each_time([&](const ComparedFigure& side) { chances.push_back(side.chance); });
    const double believed = largest_believed(chances, options_.error_rate / 2);
    each_time([&](ComparedFigure& side) {
      if (side.chance > believed || std::abs(side.change) < options_.min_change) return;
      side.verdict = side.change > 0 ? Verdict::kSlower : Verdict::kFaster;
    });
  }

  void add_totals() {
    for (const Metric& metric : metrics()) {
      if (metric.of_run == nullptr) continue;
      std::vector<Figure> figures(runs_.size());
      for (std::size_t i = 0; i < runs_.size(); ++i) {
        figures[i] = metric.of_run(runs_[i], known_[i]);
        if (metric.name == "step_ms") figures[i].quiet = quiet_[i].step_ns() / kNsPerMs;
        if (!metric.phases.empty() && !metric.is_gpus)
          figures[i].quiet = quiet_[i].models_ns(metric.phases) / kNsPerMs;
      }
      if (auto row = row_of(metric, figures, /*is_total=*/true)) {
        row->kind = "total";
        out_.rows.push_back(std::move(*row));
      }
    }
    judge_times(out_.rows);
  }

  // The layers of all runs, in the order of the first, each with its place in each run.
  struct Matched {
    std::string path;
    std::vector<const Layer*> layers;
    double score = 0;  // how much of its own time changed, beyond what all did and what is noise
  };

  std::vector<Matched> match_layers() const {
    std::vector<Matched> matched;
    std::map<std::string, std::size_t, std::less<>> places;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      for (const Layer& layer : runs_[i].layers) {
        const auto [place, is_new] = places.try_emplace(layer.path, matched.size());
        if (is_new) matched.push_back({layer.path, std::vector<const Layer*>(runs_.size()), 0});
        matched[place->second].layers[i] = &layer;
      }
    }
    return matched;
  }

  // If all layers became slower by the same, that is the machine's doing: what a layer changed by
  // beyond it shows which one did.
  void score(std::vector<Matched>& matched) const {
    const std::size_t last = runs_.size() - 1;
    const bool is_of_device = known_[last].gpu || known_[last].events;
    const RunNoise& noise = (is_of_device ? device_noise_ : host_noise_)[last];
    for (Matched& each : matched) {
      if (each.layers[0] == nullptr || each.layers[last] == nullptr) continue;
      const auto pieces = is_of_device
                              ? device_pieces(*each.layers[0], *each.layers[last], known_[last])
                              : host_pieces(*each.layers[0], *each.layers[last]);
      for (const Piece& piece : pieces) {
        const double size_ns = std::sqrt(piece.before * piece.after);
        const double change = std::log(piece.after / piece.before) - noise.common({piece.phase});
        const double beyond = std::abs(change) - 2 * noise.scatter(size_ns);
        each.score += std::max(0.0, beyond) * size_ns;
      }
    }
  }

  void add_layers() {
    std::vector<Matched> matched = match_layers();
    if (!matched.empty()) score(matched);
    std::vector<ComparedRow> rows;
    std::vector<double> scores;
    for (const Matched& each : matched) {
      note_missing("layer", each.path, each.layers);
      for (const Metric& metric : metrics()) {
        if (metric.of_layer == nullptr) continue;
        std::vector<Figure> figures(runs_.size());
        for (std::size_t i = 0; i < runs_.size(); ++i) {
          if (each.layers[i] == nullptr) continue;
          figures[i] = metric.of_layer(*each.layers[i], known_[i]);
          if (metric.phases.empty() || metric.is_gpus) continue;
          const auto index = static_cast<std::size_t>(each.layers[i] - runs_[i].layers.data());
          figures[i].quiet = quiet_[i].layer_ns(index, phases_of(metric, known_[i])) / kNsPerMs;
        }
        auto row = row_of(metric, figures, /*is_total=*/false);
        if (!row) continue;
        row->kind = "layer";
        row->name = each.path;
        const auto has_it = std::ranges::find_if(each.layers, [](const Layer* l) { return l; });
        row->type = (*has_it)->type;
        rows.push_back(std::move(*row));
        scores.push_back(each.score);
      }
    }
    judge_times(rows);
    std::vector<std::pair<double, ComparedRow>> changed;
    std::vector<std::pair<double, ComparedRow>> others;
    for (std::size_t i = 0; i < rows.size(); ++i)
      put(std::move(rows[i]), scores[i], changed, others);
    take(changed, others);
  }

  // A kernel's time by launch is known for each layer and phase that it serves: there its launches
  // are alike.
  static Figure kernel_time(const Kernel& kernel, double steps) {
    Stat stat{.mean = static_cast<double>(kernel.ns - kernel.outside_ns)};
    for (const Kernel::Use& use : kernel.uses) {
      const auto count = static_cast<double>(use.count - use.outside_count);
      stat.min += static_cast<double>(use.min_ns) * count;
      stat.max += static_cast<double>(use.max_ns) * count;
    }
    stat.min = std::min(stat.min, stat.mean);
    stat.max = std::max(stat.max, stat.mean);
    return {stat * (1e-6 / steps), true};
  }

  Verdict judge_kernel(const Stat& before, const Stat& after) const {
    const double change = std::abs(relative(before.mean, after.mean));
    if (change <= options_.min_change || !lie_apart(before, after)) return Verdict::kWithinNoise;
    return after.mean > before.mean ? Verdict::kSlower : Verdict::kFaster;
  }

  void add_kernels() {
    if (std::ranges::none_of(known_, &Known::gpu)) return;
    std::map<std::string, std::vector<const Kernel*>, std::less<>> kernels;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      for (const Kernel& kernel : runs_[i].kernels) {
        auto& sides = kernels[kernel.name];
        sides.resize(runs_.size());
        sides[i] = &kernel;
      }
    }
    std::vector<std::pair<double, ComparedRow>> changed;
    std::vector<std::pair<double, ComparedRow>> others;
    for (const auto& [name, sides] : kernels) {
      note_missing("kernel", name, sides);
      ComparedRow row{
          .kind = "kernel", .name = name, .type = "", .metric = "gpu_ms", .unit = "ms", .runs = {}};
      std::optional<Figure> first;
      for (std::size_t i = 0; i < runs_.size(); ++i) {
        ComparedFigure& side = row.runs.emplace_back();
        if (sides[i] == nullptr || !known_[i].gpu) continue;
        const Figure figure = kernel_time(*sides[i], static_cast<double>(runs_[i].step_count));
        side = {.known = true,
                .value = figure.stat.mean,
                .low = figure.stat.min,
                .high = figure.stat.max};
        if (i == 0) first = figure;
        if (i == 0 || !first) continue;
        side.change = relative(first->stat.mean, figure.stat.mean);
        const bool has_steps = runs_[0].step_count > 1 && runs_[i].step_count > 1;
        if (has_steps) side.verdict = judge_kernel(first->stat, figure.stat);
      }
      if (!first || !row.runs.back().known) continue;
      const double score = std::abs(row.runs.back().value - first->stat.mean);
      put(std::move(row), score, changed, others);
    }
    take(changed, others);
  }

  // ---- Order ----

  static void put(ComparedRow row, double score,
                  std::vector<std::pair<double, ComparedRow>>& changed,
                  std::vector<std::pair<double, ComparedRow>>& others) {
    const bool has_changed = std::ranges::any_of(
        row.runs, [](const ComparedFigure& side) { return is_change(side.verdict); });
    (has_changed ? changed : others).emplace_back(score, std::move(row));
  }

  void take(std::vector<std::pair<double, ComparedRow>>& changed,
            std::vector<std::pair<double, ComparedRow>>& others) {
    for (auto* rows : {&changed, &others}) {
      std::ranges::stable_sort(*rows, std::greater(), [](const auto& each) { return each.first; });
      for (auto& [score, row] : *rows) out_.rows.push_back(std::move(row));
    }
  }

  template <typename T>
  void note_missing(const char* kind, const std::string& name, const std::vector<const T*>& sides) {
    NotInAll missing{kind, name, {}};
    for (std::size_t i = 0; i < sides.size(); ++i) {
      if (sides[i] != nullptr) missing.runs.push_back(i);
    }
    if (missing.runs.size() != sides.size()) out_.not_in_all.push_back(std::move(missing));
  }

  static constexpr double kMemoryTolerance = 0.01;
  static constexpr double kNsPerMs = 1e6;

  const std::vector<Profile>& runs_;
  const CompareOptions& options_;
  std::vector<Known> known_;
  std::vector<QuietTimes> quiet_;
  std::vector<RunNoise> host_noise_;  // of each run against the first, and the next
  std::vector<RunNoise> device_noise_;
  Comparison out_;
};

}  // namespace
}  // namespace comparison

std::string_view verdict_name(Verdict verdict) noexcept {
  return comparison::kVerdicts[static_cast<std::size_t>(verdict)];
}

Comparison compare(const std::vector<Profile>& runs, const CompareOptions& options) {
  return comparison::Comparer(runs, options).compare();
}

}  // namespace layertrace
