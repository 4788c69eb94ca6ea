#include "report/amount_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "report/figures.h"
#include "report/numbers.h"
#include "roofline/rates.h"

namespace layertrace::report {
namespace {

constexpr std::size_t kOperatorsShown = 3;
constexpr std::size_t kLongestOperator = 60;

// "bf16", or "bf16 and fp32", the one with most FLOPs first.
std::string formats_text(const Amounts& amounts) {
  std::vector<std::size_t> formats;
  for (std::size_t i = 0; i < amounts.flops_by_format.size(); ++i) {
    if (amounts.flops_by_format[i] > 0) formats.push_back(i);
  }
  std::ranges::stable_sort(formats, [&](std::size_t a, std::size_t b) {
    return amounts.flops_by_format[a] > amounts.flops_by_format[b];
  });
  std::vector<std::string> names;
  for (const std::size_t format : formats) {
    const bool is_known = format + 1 < amounts.flops_by_format.size();
    names.emplace_back(is_known ? format_name(format) : "another format");
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

// What a figure of a simulated device is worth, by whatever peaks.
std::string_view worth(const Profile& profile) {
  const bool is_simulated = profile.device.origin == "simulated" ||
                            (!profile.run.simulated.empty() && !profile.run.device.empty());
  return is_simulated ? " That is how the simulation reckons, and says nothing about a real GPU."
                      : "";
}

std::string utilization_text(const Profile& profile, const Glyphs& glyphs) {
  const DeviceInfo& device = profile.device;
  const Amounts model = roofline::step_work(profile).model;
  const std::string formats = formats_text(model);
  const std::string name = clean(device.name, glyphs.ascii);
  const double peak = roofline::mixed_peak(model, device);
  if (peak == 0) {
    return fmt::format(
        "MFU is not known: no peak is known for {} on {}. Give it with device_peaks.", formats,
        name.empty() ? "this device" : name);
  }
  const std::string several =
      device.count > 1 ? fmt::format("{} {} ", format_count(device.count), glyphs.times) : "";
  return fmt::format("MFU {}, HFU {} of {}{} {}, {} ({}).{}", format_share(profile.mfu),
                     format_share(profile.hfu), several, format_si(peak, "FLOP/s"), formats,
                     device.origin, name, worth(profile));
}

// What layers did themselves, against the roof of each: sums of whole models would hide that one
// layer is under the one roof and the next under the other.
void add_unexplained(const Profile& profile, const Glyphs& glyphs, std::vector<Sentence>& out) {
  double busy_ns = 0;
  double unexplained_ns = 0;
  for (const Layer& layer : profile.layers) {
    for (const PhaseStats& phase : layer.phases) {
      const double own_ns = phase.self_activity_ns.mean;
      const auto at = roofline::place(phase.self_amounts, own_ns, profile.device);
      busy_ns += own_ns;
      unexplained_ns += at.unexplained_ns;
    }
  }
  if (busy_ns == 0 || profile.device.origin.empty()) return;
  out.push_back(
      {fmt::format("Of {} of activities in layers neither the peak nor the memory's bandwidth{} "
                   "explains {} ({}).",
                   format_time(busy_ns, glyphs),
                   profile.device.bytes_per_s > 0
                       ? fmt::format(" ({})", format_si(profile.device.bytes_per_s, "B/s"))
                       : "",
                   format_time(unexplained_ns, glyphs), format_share(unexplained_ns / busy_ns))});
}

std::string operator_text(const Profile& profile, const Operator& op, const Glyphs& glyphs) {
  const double share = operator_time_share(profile, op);
  const std::string time =
      share > 0 ? fmt::format(" ({} of operators' time)", format_share(share)) : "";
  return fmt::format(
      "{} {}{}{}", shorten_middle(clean(op.name, glyphs.ascii), kLongestOperator, glyphs.ellipsis),
      glyphs.times, format_count(op.uncounted), time);
}

void add_counted_share(const Profile& profile, std::vector<Sentence>& out) {
  out.push_back(
      {fmt::format("FLOPs are known of {} of the recorded steps: counted, or like one "
                   "that was{}.",
                   format_share(profile.counted_share),
                   profile.counted_share < 1 ? "; amounts and rates are too low by the "
                                               "rest"
                                             : "")});
}

void add_coverage(const Profile& profile, const Glyphs& glyphs, std::vector<Sentence>& out) {
  if (!profile.run.summary) add_counted_share(profile, out);
  double calls = 0;
  double uncounted = 0;
  std::vector<const Operator*> unknown;
  for (const Operator& op : profile.operators) {
    calls += op.calls;
    uncounted += op.uncounted;
    if (op.uncounted > 0) unknown.push_back(&op);
  }
  if (unknown.empty()) {
    if (calls > 0)
      out.push_back({fmt::format("All {} operators of a step are counted.", format_count(calls))});
    return;
  }
  std::ranges::stable_sort(unknown, [](const Operator* a, const Operator* b) {
    return std::tie(a->host_ns, a->uncounted) > std::tie(b->host_ns, b->uncounted);
  });
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(unknown.size(), kOperatorsShown); ++i)
    parts.push_back(operator_text(profile, *unknown[i], glyphs));
  if (unknown.size() > kOperatorsShown) parts.emplace_back(glyphs.ellipsis);
  out.push_back(
      {fmt::format(
           "{} of {} operators of a step are not counted, for want of a formula that can: {}.",
           format_count(uncounted), format_count(calls), fmt::join(parts, ", ")),
       Tone::kWarm});
}

// Where a step came to its peak, of each device that had one.
void add_memory(const Profile& profile, const Glyphs& glyphs, std::vector<Sentence>& out) {
  for (const DeviceMemory& memory : profile.device_memory) {
    if (memory.peak <= 0) continue;
    const std::string device =
        memory.device < 0 ? "the host" : fmt::format("GPU {}", memory.device);
    const std::string phase(phase_name(memory.peak_phase));
    std::string where = fmt::format("({})", phase);
    if (memory.peak_layer >= 0) {
      const Layer& layer = profile.layers[static_cast<std::size_t>(memory.peak_layer)];
      where = fmt::format("{} ({})",
                          clean(layer.path.empty() ? layer.name : layer.path, glyphs.ascii), phase);
    }
    out.push_back(
        {fmt::format("Memory on {} was highest in {}, {} into the step: {} above what was "
                     "in use before.",
                     device, where, format_time(memory.peak_ns, glyphs),
                     format_bytes(static_cast<std::uint64_t>(memory.peak)))});
  }
}

// A forecast without it would be too low, unsaid.
void add_unknown_state(const Profile& profile, std::vector<Sentence>& out) {
  constexpr auto kOptimizer = static_cast<std::size_t>(Phase::kOptimizer);
  const bool has_stepped = std::ranges::any_of(
      profile.steps, [](const Step& step) { return step.phase_ns[kOptimizer] != 0; });
  if (profile.device_memory.empty() || !has_stepped || forecast(profile).optimizer_known) return;
  out.push_back(
      {"What the optimizer's state takes is not known: it was there before the recording, or there "
       "is none.",
       Tone::kWarm});
}

}  // namespace

double operator_time_share(const Profile& profile, const Operator& op) {
  double all_ns = 0;
  for (const Operator& each : profile.operators) all_ns += each.host_ns;
  return all_ns > 0 ? op.host_ns / all_ns : 0;
}

std::vector<Sentence> amount_sentences(const Profile& profile, const Glyphs& glyphs) {
  std::vector<Sentence> out;
  if (!has_amounts(profile) && !has_counts(profile)) return out;
  const bool has_rates = roofline::step_work(profile).model.flops > 0 && profile.step_ns.mean > 0;
  if (has_rates && !profile.run.summary) {
    out.push_back({utilization_text(profile, glyphs)});
    add_unexplained(profile, glyphs, out);
  }
  add_memory(profile, glyphs, out);
  add_unknown_state(profile, out);
  add_coverage(profile, glyphs, out);
  return out;
}

}  // namespace layertrace::report
