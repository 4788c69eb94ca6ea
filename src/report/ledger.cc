#include "report/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "report/amount_sentences.h"
#include "report/device_sentences.h"
#include "report/figures.h"
#include "report/numbers.h"

namespace layertrace::report {
namespace {

constexpr std::size_t kNamesShown = 3;    // of what has no layer, the most frequent
constexpr std::size_t kLongestName = 60;  // cells; some operators carry a whole template signature

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string title(const Profile& profile, const Glyphs& glyphs) {
  std::vector<std::string> types;
  for (const Layer& layer : profile.layers) {
    if (layer.parent < 0 && layer.registered) types.push_back(clean(layer.type, glyphs.ascii));
  }
  std::vector<std::string> parts{types.empty() ? "no layers" : join(types, ", ")};
  for (const std::string& part :
       {profile.run.name, profile.run.program, profile.run.device, profile.run.cpu}) {
    if (!part.empty()) parts.push_back(clean(part, glyphs.ascii));
  }
  return join(parts, fmt::format(" {} ", glyphs.dot));
}

std::string steps_sentence(const Profile& profile, const Glyphs& glyphs) {
  if (profile.run.summary) {
    return was_called(profile) ? "Of one call of the model."
                               : "The model was not called: its parameters alone.";
  }
  if (profile.step_count == 0) {
    return "No step was recorded: figures are of the whole recording, shares of the sum of its "
           "times.";
  }
  const std::string mean = format_time(share_base_ns(profile), glyphs);
  if (!profile.steps_marked && !profile.run.imported_from.empty()) {
    return fmt::format("The source marks no steps: figures and shares are of the whole, {}.", mean);
  }
  if (!profile.steps_marked) {
    return fmt::format(
        "No step was marked: figures and shares are of the whole recording, {}. Call step() at the "
        "end of each step.",
        mean);
  }
  if (profile.step_count == 1)
    return fmt::format("1 recorded step of {}. Shares are of the step.", mean);
  return fmt::format(
      "{} recorded steps of {} on average ({}). Figures are per step, shares are of the step.",
      format_count(profile.step_count), mean,
      format_time_range(profile.step_ns.min, profile.step_ns.max, glyphs));
}

// " (aten::add ×2, aten::mul ×1, …)"
std::string names_text(const std::vector<Unattributed::Name>& names, const Glyphs& glyphs) {
  if (names.empty()) return "";
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) {
    const std::string name =
        shorten_middle(clean(without_arguments(names[i].name, glyphs.ellipsis), glyphs.ascii),
                       kLongestName, glyphs.ellipsis);
    parts.push_back(fmt::format("{} {}{}", name, glyphs.times, format_count(names[i].count)));
  }
  if (names.size() > kNamesShown) parts.emplace_back(glyphs.ellipsis);
  return fmt::format(" ({})", join(parts, ", "));
}

// "3 of 1,204 activities (0.2 % of activity time, 24.0 µs) have no layer: …"; `share` is "" for
// what has no time.
Sentence unattributed_sentence(const Unattributed& group, std::string_view of_what,
                               std::string_view share, const Glyphs& glyphs) {
  return {fmt::format("{} of {}{} {} no layer: {}{}.", format_count(group.count), of_what, share,
                      group.count == 1 ? "has" : "have", clean(group.cause, glyphs.ascii),
                      names_text(group.names, glyphs))};
}

void add_activities(const Profile& profile, const Glyphs& glyphs, std::vector<Sentence>& out) {
  const Health& health = profile.health;
  if (!has_activities(profile.run)) {
    out.push_back({"Operators were not recorded, so there are no activity figures."});
    return;
  }
  if (has_events_only(profile)) return;
  if (health.activities == 0) {
    out.push_back({"No activity was recorded."});
    return;
  }
  const std::string all = quantity(health.activities, "activity", "activities");
  const auto activity_ns = static_cast<double>(health.activity_ns);
  out.push_back(
      {fmt::format("{} of activity time is attributed: {}, {} in all.",
                   format_share(health.attributed_share), all, format_time(activity_ns, glyphs))});
  for (const Unattributed& group : health.unattributed) {
    const std::string share =
        fmt::format(" ({} of activity time, {})", format_share(ratio(group.ns, health.activity_ns)),
                    format_time(static_cast<double>(group.ns), glyphs));
    out.push_back(unattributed_sentence(group, all, share, glyphs));
  }
  if (health.inferred != 0) {
    out.push_back(
        {fmt::format("{} of {} ({} of activity time) ran between two layers, outside any scope, "
                     "and {} given to the "
                     "module that holds both (inferred).",
                     format_count(health.inferred), all,
                     format_share(ratio(health.inferred_ns, health.activity_ns)),
                     health.inferred == 1 ? "was" : "were")});
  }
}

void add_nodes(const Health& health, const Glyphs& glyphs, std::vector<Sentence>& out) {
  if (health.nodes == 0) {
    out.push_back({"No autograd node ran."});
    return;
  }
  std::uint64_t missing = 0;
  for (const Unattributed& group : health.unattributed_nodes) missing += group.count;
  const std::string all = quantity(health.nodes, "autograd node", "autograd nodes");
  const std::uint64_t found = health.nodes - std::min(health.nodes, missing);
  out.push_back({missing == 0 ? fmt::format("{}, all attributed.", all)
                              : fmt::format("{}, {} attributed.", all, format_count(found))});
  for (const Unattributed& group : health.unattributed_nodes) {
    const std::string time =
        group.ns == 0 ? ""
                      : fmt::format(" ({})", format_time(static_cast<double>(group.ns), glyphs));
    out.push_back(unattributed_sentence(group, all, time, glyphs));
  }
}

// Of an imported trace: what became of its events.
void add_source(const Health& health, std::vector<Sentence>& out) {
  const SourceEvents& source = health.source;
  const auto list = [](const std::vector<Unattributed>& groups) {
    std::vector<std::string> parts;
    parts.reserve(groups.size());
    for (const Unattributed& group : groups)
      parts.push_back(fmt::format("{} {}", format_count(group.count), group.cause));
    return join(parts, "; ");
  };
  out.push_back({fmt::format("Of {} of the source, {} are kept and {} are parts of those.",
                             quantity(source.events, "event", "events"), format_count(source.kept),
                             format_count(source.merged))});
  if (!source.left_out.empty())
    out.push_back({fmt::format("Left out, by reason: {}.", list(source.left_out))});
  if (!health.rejected.empty()) {
    out.push_back({fmt::format("Activities among these, which could not be kept: {}.",
                               list(health.rejected))});
  }
}

void add_records(const Health& health, std::vector<Sentence>& out) {
  out.push_back({fmt::format("{} dropped of {}.", format_count(health.dropped),
                             quantity(health.emitted, "record", "records"))});
  std::vector<std::string> parts;
  if (health.thrown_scopes > 0) {
    parts.push_back(quantity(health.thrown_scopes, "scope", "scopes") + " left by an exception");
  }
  if (health.cut_scopes > 0) {
    parts.push_back(quantity(health.cut_scopes, "scope", "scopes") +
                    " still open when the recording ended");
  }
  if (!parts.empty()) out.push_back({join(parts, ", ") + "."});
}

// What of the GPU's records is missing; nothing if nothing is.
void add_gpu_records(const GpuHealth& gpu, std::vector<Sentence>& out) {
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t count, std::string_view one, std::string_view many) {
    if (count != 0) parts.push_back(quantity(count, one, many));
  };
  add(gpu.dropped, "record dropped by CUPTI", "records dropped by CUPTI");
  add(gpu.buffers_lost, "buffer lost", "buffers lost");
  add(gpu.no_buffer, "time no buffer was free", "times no buffer was free");
  add(gpu.unknown, "record of an unknown kind", "records of unknown kinds");
  add(gpu.untimed, "activity without times left out", "activities without times left out");
  add(gpu.reversed, "activity that ends before it begins left out",
      "activities that end before they begin left out");
  add(gpu.events_missed, "pair of events missing", "pairs of events missing");
  add(gpu.events_capturing, "pair of events not made while its stream was captured",
      "pairs of events not made while their streams were captured");
  if (!parts.empty()) out.push_back({"Of the GPU's records: " + join(parts, ", ") + "."});
  if (gpu.clock_set != 0) {
    out.push_back({fmt::format(
        "The clock of the GPU's times was set {} while it was recorded.",
        gpu.clock_set == 1 ? std::string("once") : quantity(gpu.clock_set, "time", "times"))});
  }
  if (gpu.early != 0) {
    out.push_back(
        {fmt::format("{}, by their clocks, which do not agree; kept as told.",
                     quantity(gpu.early, "activity of the GPU begins before the host asked for it",
                              "activities of the GPU begin before the host asked for them"))});
  }
  if (gpu.earlier_graphs != 0) {
    out.push_back({fmt::format(
        "{} of CUDA graphs that were captured while nothing was recorded: what launched a graph "
        "counts for them.",
        quantity(gpu.earlier_graphs, "activity is", "activities are"))});
  }
}

std::string cost_sentence(const Profile& profile, const Glyphs& glyphs) {
  const Health& health = profile.health;
  if (health.scope_cost_ns == 0 && health.op_cost_ns == 0 && health.tracing_share == 0) {
    return "What recording cost was not measured.";
  }
  const std::string op_cost =
      profile.run.ops ? fmt::format(", {} an operator", format_time(health.op_cost_ns, glyphs))
                      : "";
  std::string share = format_share(health.tracing_share);
  share = share[0] == '<' ? "less than " + share.substr(1) : "about " + share;
  return fmt::format(
      "Recording cost {} of the step in layertrace itself: {} a scope{}; writer thread {} of CPU "
      "time.{}",
      share, format_time(health.scope_cost_ns, glyphs), op_cost,
      format_time(static_cast<double>(health.writer_cpu_ns), glyphs),
      !has_counts(profile) ? "" : " What counting took is not in this.");
}

}  // namespace

std::string quantity(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", format_count(count), count == 1 ? one : many);
}

std::string text_of(const std::vector<Sentence>& sentences, std::size_t width, bool color) {
  std::string out;
  for (const Sentence& sentence : sentences) {
    for (const std::string& line : wrap_words(sentence.text, width))
      out += paint(line, sentence.tone, color) + '\n';
  }
  return out;
}

std::string simulation_note(std::string_view done, std::string_view device, bool ascii) {
  return fmt::format(
      "Simulated: {} on a {} (simgpu). Its times say nothing about how fast a real GPU is.", done,
      device.empty() ? "simulated GPU" : clean(device, ascii));
}

std::string simulation_note(const RunInfo& run, bool ascii) {
  return run.simulated.empty() ? "" : simulation_note("recorded", run.simulated, ascii);
}

std::vector<Sentence> opening(const Profile& profile, const Glyphs& glyphs) {
  const Health& health = profile.health;
  std::vector<Sentence> out;
  if (health.cut) {
    out.push_back(
        {"Warning: the recording is cut: its file ends without the closing record. "
         "The figures are of what was written until then.",
         Tone::kHot});
  }
  if (health.dropped > 0) {
    out.push_back(
        {fmt::format("Warning: {} of {} were dropped. Figures may be too low.",
                     format_count(health.dropped), quantity(health.emitted, "record", "records")),
         Tone::kHot});
  }
  if (!profile.run.simulated.empty())
    out.push_back({simulation_note(profile.run, glyphs.ascii), Tone::kHot});
  for (const std::string& note : health.notes) {
    out.push_back({fmt::format("Note: {}", clean(note, glyphs.ascii)), Tone::kWarm});
  }
  out.push_back({title(profile, glyphs), Tone::kBold});
  return out;
}

std::vector<Sentence> heading(const Profile& profile, const Glyphs& glyphs) {
  std::vector<Sentence> out = opening(profile, glyphs);
  out.push_back({steps_sentence(profile, glyphs)});
  return out;
}

std::vector<Sentence> ledger(const Profile& profile, const Glyphs& glyphs) {
  if (profile.run.summary) return amount_sentences(profile, glyphs);
  std::vector<Sentence> out = device_sentences(profile, glyphs);
  for (Sentence& sentence : amount_sentences(profile, glyphs)) out.push_back(std::move(sentence));
  add_activities(profile, glyphs, out);
  add_gpu_records(profile.health.gpu, out);
  add_nodes(profile.health, glyphs, out);
  if (profile.health.source.events != 0) {
    add_source(profile.health, out);
    return out;
  }
  add_records(profile.health, out);
  out.push_back({cost_sentence(profile, glyphs)});
  return out;
}

}  // namespace layertrace::report
