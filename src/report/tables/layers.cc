#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "report/device_sentences.h"
#include "report/figures.h"
#include "report/tables/makers.h"
#include "report/tables/sheet.h"
#include "roofline/rates.h"

namespace layertrace::tables {
namespace {

struct FullRow {
  const Layer* layer = nullptr;
  int depth = 0;
  report::Figures figures;
  roofline::Placement place;
};

using LayerSheet = Sheet<FullRow>;

std::vector<FullRow> full_rows(const Profile& profile, const TableOptions& options) {
  std::vector<FullRow> rows;
  const ChosenLayers layers(profile, options);
  for (const LayerRow& row : layers.rows()) {
    const report::Figures figures = report::figures_of(*row.layer);
    rows.push_back({row.layer, row.depth, figures,
                    roofline::place(figures.work, figures.work_ns, profile.device)});
  }
  return rows;
}

// What is known of the run decides which figures are nothing, and which are zero.
struct Known {
  bool steps;
  bool activities;  // operators, or what a GPU did
  bool kernels;     // what a GPU did
  bool events;      // how long that took by CUDA events
  bool counted;
};

Known known_of(const Profile& profile) {
  const bool steps = !profile.run.summary;
  const bool gpu = steps && !profile.run.device.empty();
  const bool kernels = gpu && !report::has_events_only(profile);
  const std::string& timing = profile.health.gpu.timing;
  return {.steps = steps,
          .activities = kernels || (steps && !gpu && report::has_activities(profile.run)),
          .kernels = kernels,
          .events = gpu && (timing == "events" || timing == "both"),
          .counted = report::has_amounts(profile)};
}

template <typename T>
TableValue if_known(bool is_known, T value) {
  return is_known ? cell(value) : TableValue();
}

// Of the layer as a whole: times of all phases that are the model's.
void add_times(LayerSheet& sheet, const Profile& profile, const Known& known) {
  const double step_ns = report::share_base_ns(profile);
  const auto time = [&](const char* name, double report::Figures::*figure, bool is_known) {
    sheet.real(name, "ns", [=](const FullRow& row) {
      return if_known(is_known && row.layer->ran, row.figures.*figure);
    });
  };
  const auto share = [&](const char* name, double report::Figures::*figure) {
    sheet.real(name, "share", [=](const FullRow& row) {
      return if_known(known.steps && row.layer->ran && step_ns > 0, row.figures.*figure / step_ns);
    });
  };
  time("forward_ns", &report::Figures::forward_ns, known.steps);
  share("forward_share", &report::Figures::forward_ns);
  time("backward_ns", &report::Figures::backward_ns, known.steps);
  share("backward_share", &report::Figures::backward_ns);
  time("total_ns", &report::Figures::total_ns, known.steps);
  share("total_share", &report::Figures::total_ns);
  time("self_ns", &report::Figures::self_ns, known.steps);
  time("gpu_forward_ns", &report::Figures::gpu_forward_ns, known.kernels);
  time("gpu_backward_ns", &report::Figures::gpu_backward_ns, known.kernels);
  // People read the events' times where there are no kernels'.
  for (const auto& [name, figure] :
       {std::pair{"gpu_event_forward_ns", &report::Figures::event_forward_ns},
        std::pair{"gpu_event_backward_ns", &report::Figures::event_backward_ns}}) {
    time(name, figure, known.events);
    if (known.kernels) sheet.detail();
  }
  time("gpu_idle_ns", &report::Figures::idle_ns, known.kernels);
  sheet.detail();
  sheet.real("activities", "per step", [=](const FullRow& row) {
    return if_known(known.activities && !known.kernels && row.layer->ran, row.figures.activities);
  });
  sheet.real("kernels", "per step", [=](const FullRow& row) {
    return if_known(known.kernels && row.layer->ran, row.figures.activities);
  });
  sheet.real("copies", "per step", [=](const FullRow& row) {
    return if_known(known.kernels && row.layer->ran, row.figures.copies);
  });
  sheet.detail();
  sheet.real("launches", "per step", [=](const FullRow& row) {
    return if_known(known.kernels && row.layer->ran, row.figures.launches);
  });
  sheet.detail();
}

void add_facts(LayerSheet& sheet) {
  sheet.integer("params", "elements", [](const FullRow& row) { return row.layer->params; })
      .integer("params_trainable", "elements",
               [](const FullRow& row) { return row.layer->params_trainable; })
      .detail()
      .integer("param_bytes", "bytes", [](const FullRow& row) { return row.layer->param_bytes; })
      .integer("buffer_bytes", "bytes", [](const FullRow& row) { return row.layer->buffer_bytes; })
      .detail()
      .integer("self_params", "elements", [](const FullRow& row) { return row.layer->self_params; })
      .detail()
      .text("kernel_size", [](const FullRow& row) { return text_if_any(row.layer->kernel_size); })
      .detail()
      .text("input_shapes",
            [](const FullRow& row) {
              const auto& shapes = row.layer->shapes;
              return shapes.empty() ? TableValue() : cell(shapes.front().input);
            })
      .detail()
      .text("output_shapes",
            [](const FullRow& row) {
              const auto& shapes = row.layer->shapes;
              return shapes.empty() ? TableValue() : cell(shapes.front().output);
            })
      .detail();
}

// Of what operators computed, moved and kept.
void add_amounts(LayerSheet& sheet, const Known& known) {
  const auto amount = [&](const char* name, const char* unit, double report::Figures::*figure) {
    sheet.real(name, unit, [=](const FullRow& row) {
      return if_known(known.counted && row.layer->ran, row.figures.*figure);
    });
  };
  amount("flops", "FLOP", &report::Figures::flops);
  amount("macs", "MAC", &report::Figures::macs);
  sheet.detail();
  amount("aux_flops", "FLOP", &report::Figures::aux_flops);
  sheet.detail();
  amount("moved_bytes", "bytes", &report::Figures::bytes);
  sheet.detail();
  amount("activations", "elements", &report::Figures::activations);
  sheet.detail();
  amount("memory_peak_bytes", "bytes", &report::Figures::memory_peak);
  amount("memory_kept_bytes", "bytes", &report::Figures::memory_kept);
  sheet.detail();
}

// Of forward and backward, while the device was busy with them.
void add_rates(LayerSheet& sheet) {
  const auto if_roofed = [](const FullRow& row, TableValue value) {
    return row.place.roof == Roof::kNone ? TableValue() : std::move(value);
  };
  sheet
      .real("flops_per_s", "FLOP/s",
            [](const FullRow& row) { return if_positive(row.place.flops_per_s); })
      .real("moved_bytes_per_s", "bytes/s",
            [](const FullRow& row) { return if_positive(row.place.bytes_per_s); })
      .detail()
      .real("intensity", "FLOP/byte",
            [](const FullRow& row) { return if_positive(row.place.intensity); })
      .detail()
      .text("roof",
            [=](const FullRow& row) { return if_roofed(row, cell(roof_name(row.place.roof))); })
      .real("roof_share", "share",
            [=](const FullRow& row) { return if_roofed(row, cell(row.place.share)); })
      .real("compute_share", "share",
            [](const FullRow& row) { return if_positive(row.place.compute_share); })
      .detail()
      .real("unexplained_ns", "ns",
            [=](const FullRow& row) { return if_roofed(row, cell(row.place.unexplained_ns)); })
      .detail();
}

// Everything of one phase. Nothing where the layer had no part in it.
void add_phase(LayerSheet& sheet, Phase phase, const Known& known) {
  const std::string prefix(phase_name(phase));
  const auto add = [&](const char* name, const char* unit, bool is_known, const auto& read) {
    sheet.real(fmt::format("{}_{}", prefix, name), unit, [=](const FullRow& row) {
      const PhaseStats& stats = row.layer->phase(phase);
      return if_known(is_known && !stats.empty(), read(stats));
    });
    sheet.detail();
  };
  const auto mean = [](Stat PhaseStats::*stat) {
    return [stat](const PhaseStats& stats) { return (stats.*stat).mean; };
  };
  add("calls", "per step", true, mean(&PhaseStats::calls));
  add("host_ns", "ns", known.steps, mean(&PhaseStats::host_ns));
  add("host_stdev_ns", "ns", known.steps,
      [](const PhaseStats& stats) { return stats.host_ns.stdev; });
  add("self_host_ns", "ns", known.steps, mean(&PhaseStats::self_host_ns));
  add("activities", "per step", known.activities, mean(&PhaseStats::activities));
  add("activity_ns", "ns", known.activities, mean(&PhaseStats::activity_ns));
  add("self_activity_ns", "ns", known.activities, mean(&PhaseStats::self_activity_ns));
  add("busy_ns", "ns", known.activities, mean(&PhaseStats::busy_ns));
  add("copies", "per step", known.kernels, mean(&PhaseStats::copies));
  add("launches", "per step", known.kernels, mean(&PhaseStats::launches));
  add("gpu_event_ns", "ns", known.events, mean(&PhaseStats::event_ns));
  add("gpu_idle_ns", "ns", known.kernels, mean(&PhaseStats::idle_ns));
  add("flops", "FLOP", known.counted, [](const PhaseStats& stats) { return stats.amounts.flops; });
  add("self_flops", "FLOP", known.counted,
      [](const PhaseStats& stats) { return stats.self_amounts.flops; });
  add("moved_bytes", "bytes", known.counted,
      [](const PhaseStats& stats) { return stats.amounts.bytes; });
  add("memory_peak_bytes", "bytes", known.counted,
      [](const PhaseStats& stats) { return stats.memory.peak; });
}

}  // namespace

Table layers_table(const Profile& profile, const TableOptions& options) {
  const Known known = known_of(profile);
  LayerSheet sheet("layers", full_rows(profile, options));
  sheet.text("path", [&](const FullRow& row) { return shown_path(row.layer->path, options); })
      .text("type", [](const FullRow& row) { return row.layer->type; })
      .integer("depth", "levels", [](const FullRow& row) { return row.depth; })
      .detail()
      .real("calls", "per step", [](const FullRow& row) { return row.layer->calls; })
      .boolean("ran", [](const FullRow& row) { return row.layer->ran; })
      .detail()
      .boolean("registered", [](const FullRow& row) { return row.layer->registered; })
      .detail()
      .text("shared_with",
            [&](const FullRow& row) {
              return row.layer->shared_with.empty()
                         ? TableValue()
                         : cell(shown_path(row.layer->shared_with, options));
            })
      .detail();
  add_times(sheet, profile, known);
  add_amounts(sheet, known);
  add_rates(sheet);
  add_facts(sheet);
  for (std::size_t i = 0; i < kPhaseCount; ++i) add_phase(sheet, static_cast<Phase>(i), known);
  return sheet.take();
}

}  // namespace layertrace::tables
