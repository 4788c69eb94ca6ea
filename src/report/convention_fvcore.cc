// fvcore sees the operators that a program calls, linear and not the addmm inside, and counts those
// that it knows. What it says is kept with each call from the beginning. Which products it does not
// see shows where multiply-adds are left that none of its operators has.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "attribute/fvcore_names.h"
#include "report/convention_parts.h"

namespace layertrace::report {
namespace {

// An operator in a layer's forward.
struct Use {
  std::string_view name;
  double macs = 0;  // that are charged here, and that no operator above has claimed
  double seen = 0;  // by fvcore, here
};

// Operators that ask others for their products, and whom, the likeliest first.
struct Wrapper {
  std::string_view name;
  std::array<std::string_view, 6> inner;
};
constexpr std::array kWrappers{
    Wrapper{"conv", {"conv", "", "", "", "", ""}},
    Wrapper{"linear", {"addmm", "mm", "_addmm_activation", "mv", "dot", "bmm"}},
    Wrapper{"matmul", {"bmm", "mm", "mv", "dot", "addmm", "baddbmm"}},
    Wrapper{"einsum", {"bmm", "mm", "mv", "dot", "sumproduct_pair", "addmm"}},
};

// As many of the inner one's multiply-adds as the outer one has.
void claim(Use& outer, Use& inner) {
  const double taken = std::min(outer.seen, inner.macs);
  if (taken <= 0) return;
  inner.macs -= taken;
  outer.seen -= taken;
}

// Leaves what fvcore does not see.
void claim_seen(std::vector<Use>& uses) {
  for (Use& use : uses) claim(use, use);
  for (const Wrapper& wrapper : kWrappers) {
    for (Use& outer : uses) {
      if (fvcore_name(outer.name) != wrapper.name) continue;
      for (const std::string_view name : wrapper.inner) {
        for (Use& inner : uses) {
          if (fvcore_name(inner.name) == name) claim(outer, inner);
        }
      }
    }
  }
}

}  // namespace

ConventionCounts fvcore_counts(const Profile& profile) {
  std::map<int, std::vector<Use>> uses;
  std::map<std::string, double> flops;
  std::map<std::string, double> activations;
  LayerCounts layer_activations(profile.layers.size());
  double macs = 0;
  for (const Operator& op : profile.operators) {
    for (const Operator::Use& use : op.uses) {
      const bool is_known = use.layer >= 0 && std::cmp_less(use.layer, profile.layers.size());
      if (use.phase != Phase::kForward || !is_known) continue;
      const Amounts& amounts = use.amounts;
      const std::string name(fvcore_name(op.name));
      flops[name] += amounts.fvcore_flops;
      activations[name] += amounts.fvcore_activations;
      layer_activations[static_cast<std::size_t>(use.layer)] += amounts.fvcore_activations;
      macs += amounts.macs();
      uses[use.layer].push_back({op.name, amounts.macs(), amounts.fvcore_flops});
    }
  }
  std::map<std::string, double> unseen;
  for (auto& [layer, each] : uses) {
    claim_seen(each);
    for (const Use& use : each) unseen[std::string(use.name)] += use.macs;
  }
  LayerCounts layer_flops;
  for (const Layer& layer : profile.layers)
    layer_flops.push_back(layer.phase(Phase::kForward).self_amounts.fvcore_flops);

  ConventionCounts counts;
  counts.unit = "MACs";  // fvcore says FLOPs
  counts.by_module = by_module(profile, std::move(layer_flops));
  counts.by_operator = by_size(flops);
  counts.activations_by_module = by_module(profile, std::move(layer_activations));
  counts.activations_by_operator = by_size(activations);
  for (const auto& [name, products] : by_size(unseen)) {
    counts.notes.push_back(fmt::format(
        "fvcore does not see the products of {}: {:.3g} % of the forward's multiply-adds.", name,
        100 * products / macs));
  }
  const bool sees_products = std::ranges::any_of(counts.by_operator, [](const auto& each) {
    return fvcore_counts_output(each.first) && each.second > 0;
  });
  if (sees_products && counts.activations_by_operator.empty())
    counts.notes.emplace_back("This trace is from before fvcore's activations were kept.");
  return counts;
}

}  // namespace layertrace::report
