// make_card(): what the registry has, computed of one model.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/cards/notes.h"
#include "report/cards/registry.h"
#include "report/convention_parts.h"
#include "report/text.h"

namespace layertrace {
namespace cards {
namespace {

using Values = std::vector<std::optional<double>>;

// Each function is called once, for all of its metrics.
class Computer {
 public:
  Computer(const MetricInput& input, ModelCard& card) : input_(input), card_(card) {}

  std::optional<double> value_of(const Registered& metric) {
    const auto [place, is_new] = computed_.try_emplace(metric.function.get());
    if (is_new) place->second = compute(metric);
    const Values& values = place->second;
    return metric.place < values.size() ? values[metric.place] : std::nullopt;
  }

 private:
  Values compute(const Registered& metric) {
    std::string cause;
    try {
      Values values = (*metric.function)(input_);
      if (metric.place < values.size()) return values;
      cause = fmt::format("its function gives {} values", values.size());
    } catch (const std::exception& error) {
      cause = error.what();
    } catch (...) {
      cause = "its function threw what is no std::exception";
    }
    card_.failures.push_back(
        {fmt::format("cannot compute the metric \"{}\"", report::clean(metric.info.key, false)),
         std::move(cause), ""});
    return {};
  }

  const MetricInput& input_;
  ModelCard& card_;
  std::map<const void*, Values> computed_;
};

Result<std::vector<Registered>> chosen(const std::vector<std::string>& keys) {
  std::vector<Registered> all = registered_metrics();
  if (keys.empty()) return all;
  std::vector<Registered> out;
  for (const std::string& key : keys) {
    const auto found =
        std::ranges::find(all, key, [](const Registered& each) { return each.info.key; });
    if (found == all.end()) {
      std::string known;
      for (const Registered& each : all)
        known += (known.empty() ? "" : ", ") + report::clean(each.info.key, false);
      return Error{fmt::format("cannot show the metric \"{}\"", report::clean(key, false)),
                   "no such name", "Use one of: " + known};
    }
    out.push_back(*found);
  }
  return out;
}

std::string name_of(const Profile* summary) {
  if (summary == nullptr) return "model";
  const auto root = std::ranges::find_if(
      summary->layers, [](const Layer& layer) { return layer.parent < 0 && layer.registered; });
  return root == summary->layers.end() ? "model" : root->type;
}

void add_notes(const MetricInput& input, ModelCard& card) {
  if (input.summary == nullptr) return;
  if (!card.simulated.empty()) card.notes.push_back(simulated_note(card));
  if (input.convention == Convention::kLayertrace) return;
  card.notes.push_back(fmt::format("counted as {} counts", card.convention));
  for (const std::string& note : counts_by(*input.summary, input.convention).notes)
    card.notes.push_back(note.ends_with('.') ? note.substr(0, note.size() - 1) : note);
  if (input.convention == Convention::kModuleprofiler)
    card.notes.emplace_back("moduleprofiler counts operations, and has no MACs");
}

}  // namespace
}  // namespace cards

Result<void> check_metrics(const std::vector<std::string>& keys) {
  const auto chosen = cards::chosen(keys);
  if (!chosen) return chosen.error();
  return {};
}

Result<ModelCard> make_card(const MetricInput& input, const std::string& device,
                            const CardOptions& options) {
  const auto chosen = cards::chosen(options.metrics);
  if (!chosen) return chosen.error();
  ModelCard card;
  card.name = options.name.empty() ? cards::name_of(input.summary) : options.name;
  card.device = device;
  card.batch_size = input.batch_size;
  card.convention = report::convention_name(input.convention);
  if (input.summary != nullptr) {
    card.summary = std::make_shared<const Profile>(*input.summary);
    // A program that has a simulated GPU may have its model on the host.
    if (device.starts_with("cuda")) card.simulated = input.summary->run.simulated;
  }
  cards::Computer computer(input, card);
  for (const cards::Registered& metric : *chosen) {
    const std::optional<double> value = computer.value_of(metric);
    if (value || !options.metrics.empty()) card.metrics.push_back({metric.info, value});
  }
  cards::add_notes(input, card);
  return card;
}

}  // namespace layertrace
