#include "attribute/amount_table.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>

namespace layertrace {

Amounts& Amounts::operator+=(const Amounts& other) noexcept {
  flops += other.flops;
  aux_flops += other.aux_flops;
  flops_causal += other.flops_causal;
  bytes += other.bytes;
  activations += other.activations;
  fvcore_flops += other.fvcore_flops;
  fvcore_activations += other.fvcore_activations;
  for (std::size_t i = 0; i < flops_by_format.size(); ++i)
    flops_by_format[i] += other.flops_by_format[i];
  return *this;
}

Amounts operator*(Amounts amounts, double factor) noexcept {
  amounts.flops *= factor;
  amounts.aux_flops *= factor;
  amounts.flops_causal *= factor;
  amounts.bytes *= factor;
  amounts.activations *= factor;
  amounts.fvcore_flops *= factor;
  amounts.fvcore_activations *= factor;
  for (double& flops : amounts.flops_by_format) flops *= factor;
  return amounts;
}

namespace {

Amounts as_amounts(const OpAmounts& counted) noexcept {
  Amounts amounts{.flops = static_cast<double>(counted.flops),
                  .aux_flops = static_cast<double>(counted.aux_flops),
                  .flops_causal = static_cast<double>(counted.flops_causal),
                  .bytes = static_cast<double>(counted.bytes),
                  .activations = static_cast<double>(counted.activations),
                  .fvcore_flops = static_cast<double>(counted.fvcore_flops),
                  .fvcore_activations = static_cast<double>(counted.fvcore_activations)};
  const std::size_t format = std::min<std::size_t>(counted.format, kOtherFormat);
  amounts.flops_by_format[format] = amounts.flops;
  return amounts;
}

}  // namespace

// ---- Sums ----

void AmountSums::add(LayerId layer, Phase phase, const OpAmounts& amounts) {
  Sum& sum = sums_[key_of(layer, phase, amounts.op)];
  sum.calls += amounts.is_call ? 1 : 0;
  sum.uncounted += amounts.is_uncounted ? 1 : 0;
  sum.amounts += as_amounts(amounts);
}

void AmountSums::merge(const AmountSums& other) {
  for (const auto& [key, sum] : other.sums_) {
    Sum& own = sums_[key];
    own.calls += sum.calls;
    own.uncounted += sum.uncounted;
    own.amounts += sum.amounts;
  }
}

// ---- Steps ----

void CountedStep::counting(const CountingSpan& span) {
  const auto after = std::ranges::upper_bound(stretches_, span.ns, {}, &Stretch::start_ns);
  stretches_.insert(after, {span.ns, span.key, span.is_counted, {}});
  if (stretches_.size() <= kMostOpen) return;
  has_lost_ = !add(stretches_.front(), earlier_) || has_lost_;
  stretches_.erase(stretches_.begin());
}

bool CountedStep::add(const Stretch& stretch, AlikeByKey& alike) {
  if (alike.size() >= kMostKeys && !alike.contains(stretch.key)) return false;
  Alike& same = alike[stretch.key];
  ++same.stretches;
  if (!stretch.is_counted) return true;
  ++same.counted;
  same.sums.merge(stretch.sums);
  return true;
}

bool CountedStep::add_to(AlikeByKey& alike) const {
  bool has_all = !has_lost_;
  for (const auto& [key, earlier] : earlier_) {
    if (alike.size() >= kMostKeys && !alike.contains(key)) {
      has_all = false;
      continue;
    }
    Alike& same = alike[key];
    same.stretches += earlier.stretches;
    same.counted += earlier.counted;
    same.sums.merge(earlier.sums);
    has_all = has_all && same.counted != 0;
  }
  for (const Stretch& stretch : stretches_)
    has_all = add(stretch, alike) && alike[stretch.key].counted != 0 && has_all;
  return has_all && !stretches_.empty();
}

// What is counted before the first stretch is told belongs to that.
CountedStep::Stretch& CountedStep::stretch_at(std::uint64_t ns) {
  const auto after = std::ranges::upper_bound(stretches_, ns, {}, &Stretch::start_ns);
  return after == stretches_.begin() ? stretches_.front() : *std::prev(after);
}

void CountedStep::amounts(const AmountsSpan& span) {
  if (stretches_.empty()) counting({.ns = span.ns, .key = 0, .is_counted = true});
  stretch_at(span.ns).sums.add(span.layer, span.phase, span.amounts);
}

// ---- The whole ----

void AmountTable::add(const CountedStep& step) {
  ++steps_;
  known_steps_ += step.add_to(alike_) ? 1 : 0;
}

void AmountTable::fill(Profile& profile, const Dictionary& dictionary) const {
  if (steps_ == 0) return;
  const auto steps = static_cast<double>(steps_);
  profile.counted_share = static_cast<double>(known_steps_) / steps;
  // Sums of rounded figures depend on their order: it may not depend on how names are numbered,
  // which a file that is read back does in its own way.
  struct Row {
    std::uint64_t key = 0;
    LayerId layer = kNoLayer;
    Phase phase = Phase::kOther;
    std::string_view text;
    NameId name = kNoName;
    const AmountSums::Sum* sum = nullptr;
    double factor = 0;
  };
  std::vector<Row> rows;
  for (const auto& [key, alike] : alike_) {
    if (alike.counted == 0) continue;
    const double factor =
        static_cast<double>(alike.stretches) / static_cast<double>(alike.counted) / steps;
    alike.sums.each([&, key = key](LayerId layer, Phase phase, NameId name,
                                   const AmountSums::Sum& sum) {
      const bool has_text = index(name) < dictionary.names.size();
      const std::string_view text = has_text ? dictionary.names[index(name)] : std::string_view();
      rows.push_back({key, layer, phase, text, name, &sum, factor});
    });
  }
  std::ranges::sort(rows, [](const Row& a, const Row& b) {
    return std::tie(a.key, a.layer, a.phase, a.text) < std::tie(b.key, b.layer, b.phase, b.text);
  });

  std::unordered_map<std::uint32_t, Operator> operators;
  for (const Row& row : rows) {
    const Amounts amounts = row.sum->amounts * row.factor;
    const auto p = static_cast<std::size_t>(row.phase);
    const bool is_known = row.layer != kNoLayer && index(row.layer) < profile.layers.size();
    const int owner = is_known ? static_cast<int>(index(row.layer)) : -1;
    if (owner < 0) {
      profile.outside[p].amounts += amounts;
      profile.outside[p].self_amounts += amounts;
    } else {
      profile.layers[index(row.layer)].phases[p].self_amounts += amounts;
    }
    for (int at = owner; at >= 0; at = profile.layers[static_cast<std::size_t>(at)].parent)
      profile.layers[static_cast<std::size_t>(at)].phases[p].amounts += amounts;

    Operator& op = operators[index(row.name)];
    const double calls = static_cast<double>(row.sum->calls) * row.factor;
    op.calls += calls;
    op.uncounted += static_cast<double>(row.sum->uncounted) * row.factor;
    op.amounts += amounts;
    const auto use = std::ranges::find_if(op.uses, [&](const Operator::Use& each) {
      return each.layer == owner && each.phase == row.phase;
    });
    if (use == op.uses.end()) {
      op.uses.push_back({owner, row.phase, calls, amounts});
    } else {
      use->calls += calls;
      use->amounts += amounts;
    }
  }
  for (auto& [name, op] : operators) {
    if (name < dictionary.names.size()) op.name = dictionary.names[name];
    std::ranges::sort(op.uses, [](const auto& a, const auto& b) {
      return std::tie(a.layer, a.phase) < std::tie(b.layer, b.phase);
    });
    profile.operators.push_back(std::move(op));
  }
  std::ranges::sort(profile.operators, [](const Operator& a, const Operator& b) {
    return std::tie(b.amounts.flops, b.calls, a.name) < std::tie(a.amounts.flops, a.calls, b.name);
  });
}

}  // namespace layertrace
