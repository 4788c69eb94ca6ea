// counts_by() and counts_json(): the same counts as other tools would give them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "report/convention_parts.h"
#include "report/json_parts.h"
#include "report/text.h"

namespace layertrace {
namespace report {
namespace {

struct ConventionInfo {
  Convention convention;
  std::string_view name;
  ConventionCounts (*counts)(const Profile&);
};

constexpr std::array kConventions{
    ConventionInfo{Convention::kLayertrace, "layertrace", layertrace_counts},
    ConventionInfo{Convention::kFvcore, "fvcore", fvcore_counts},
    ConventionInfo{Convention::kTorchinfo, "torchinfo", torchinfo_counts},
    ConventionInfo{Convention::kModuleprofiler, "moduleprofiler", moduleprofiler_counts},
    ConventionInfo{Convention::kDeeplite, "deeplite", deeplite_counts},
};

const ConventionInfo& info_of(Convention convention) {
  const auto* found = std::ranges::find(kConventions, convention, &ConventionInfo::convention);
  return found == kConventions.end() ? kConventions.front() : *found;
}

Json counts_object(const ConventionCounts::Counts& counts) {
  Json out = Json::object();
  for (const auto& [name, count] : counts) out[replace_invalid_utf8(name)] = number(count);
  return out;
}

}  // namespace

std::string_view convention_name(Convention convention) { return info_of(convention).name; }

ConventionCounts::Counts by_module(const Profile& profile, LayerCounts counts) {
  // Parents come before children.
  double whole = 0;
  for (std::size_t i = counts.size(); i-- > 0;) {
    const int parent = profile.layers[i].parent;
    (parent < 0 ? whole : counts[static_cast<std::size_t>(parent)]) += counts[i];
  }
  ConventionCounts::Counts result;
  if (profile.find("") == nullptr) result.emplace_back("", whole);
  for (std::size_t i = 0; i < counts.size(); ++i)
    result.emplace_back(profile.layers[i].path, counts[i]);
  return result;
}

ConventionCounts::Counts by_size(const std::map<std::string, double>& counts) {
  ConventionCounts::Counts result;
  std::ranges::copy_if(counts, std::back_inserter(result),
                       [](const auto& each) { return each.second != 0; });
  std::ranges::stable_sort(result, std::ranges::greater(),
                           [](const auto& each) { return each.second; });
  return result;
}

void Remarks::add(std::string_view remark, std::string_view path) {
  if (!remark.empty()) places_[std::string(remark)].emplace_back(path.empty() ? "the root" : path);
}

std::vector<std::string> Remarks::sentences() const {
  std::vector<std::string> result = sentences_;
  for (const auto& [remark, paths] : places_) {
    const std::string others =
        paths.size() == 1 ? "" : fmt::format(" and {} more", paths.size() - 1);
    result.push_back(fmt::format("{} ({}{}).", remark, paths.front(), others));
  }
  return result;
}

ConventionCounts layertrace_counts(const Profile& profile) {
  LayerCounts flops;
  LayerCounts activations;
  for (const Layer& layer : profile.layers) {
    const Amounts& own = layer.phase(Phase::kForward).self_amounts;
    flops.push_back(own.flops);
    activations.push_back(own.activations);
  }
  std::map<std::string, double> flops_by_operator;
  std::map<std::string, double> activations_by_operator;
  for (const Operator& op : profile.operators) {
    for (const Operator::Use& use : op.uses) {
      if (use.phase != Phase::kForward || use.layer < 0) continue;
      flops_by_operator[op.name] += use.amounts.flops;
      activations_by_operator[op.name] += use.amounts.activations;
    }
  }
  ConventionCounts counts;
  counts.unit = "FLOPs";
  counts.by_module = by_module(profile, std::move(flops));
  counts.by_operator = by_size(flops_by_operator);
  counts.activations_by_module = by_module(profile, std::move(activations));
  counts.activations_by_operator = by_size(activations_by_operator);
  return counts;
}

}  // namespace report

Result<Convention> parse_convention(std::string_view name) {
  const auto* found = std::ranges::find(report::kConventions, name, &report::ConventionInfo::name);
  if (found != report::kConventions.end()) return found->convention;
  std::string known;
  for (const auto& info : report::kConventions)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", info.name);
  return Error{fmt::format("cannot use \"{}\" as a convention", report::clean(name, false)),
               "no such name", "Use one of: " + known};
}

ConventionCounts counts_by(const Profile& profile, Convention convention) {
  ConventionCounts counts = report::info_of(convention).counts(profile);
  if (convention != Convention::kDeeplite) {
    for (const Layer& layer : profile.layers) {
      if (layer.parent >= 0) continue;
      counts.parameters += static_cast<double>(layer.params);
      counts.parameter_bytes += static_cast<double>(layer.param_bytes);
    }
  }
  if (profile.counted_share == 0) {
    counts.notes.emplace_back("Operators and shapes were not counted in this recording.");
  } else if (profile.counted_share < 1) {
    counts.notes.emplace_back(
        "Some steps were not counted, nor like others that were: figures are too low.");
  }
  return counts;
}

std::string counts_json(const Profile& profile, Convention convention) {
  using report::dump;
  const ConventionCounts counts = counts_by(profile, convention);
  std::string out = "{\"convention\":" + dump(report::info_of(convention).name);
  out += ",\"unit\":" + dump(counts.unit);
  out += ",\n\"by_module\":" + dump(report::counts_object(counts.by_module));
  out += ",\n\"by_operator\":" + dump(report::counts_object(counts.by_operator));
  if (convention == Convention::kLayertrace || convention == Convention::kFvcore) {
    out +=
        ",\n\"activations_by_module\":" + dump(report::counts_object(counts.activations_by_module));
    out += ",\n\"activations_by_operator\":" +
           dump(report::counts_object(counts.activations_by_operator));
  }
  out += ",\n\"parameters\":" + dump(report::number(counts.parameters));
  out += ",\"parameter_bytes\":" + dump(report::number(counts.parameter_bytes));
  if (counts.model_size_mb)
    out += ",\"model_size_mb\":" + dump(report::number(*counts.model_size_mb));
  if (counts.footprint_mb) out += ",\"footprint_mb\":" + dump(report::number(*counts.footprint_mb));
  report::Json notes = report::Json::array();
  for (const std::string& note : counts.notes) notes.push_back(report::replace_invalid_utf8(note));
  return out + ",\n\"notes\":" + dump(notes) + "}\n";
}

}  // namespace layertrace
