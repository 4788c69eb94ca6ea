// Cards side by side.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/cards/built_in.h"
#include "report/cards/judge.h"

namespace layertrace {
namespace cards {
namespace {

class Comparer {
 public:
  explicit Comparer(std::vector<ModelCard> cards) { out_.cards = std::move(cards); }

  CardComparison compare() {
    number_equal_names();
    for (const ModelCard& card : out_.cards) {
      for (const MetricValue& metric : card.metrics) {
        const auto has_key = [&](const ComparedMetric& row) {
          return row.info.key == metric.info.key;
        };
        if (std::ranges::none_of(out_.rows, has_key)) out_.rows.push_back(row_of(metric.info));
      }
    }
    note_differences();
    return std::move(out_);
  }

 private:
  void number_equal_names() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < out_.cards.size(); ++i) {
      std::string& name = out_.cards[i].name;
      if (std::ranges::find(names, name) != names.end()) name += fmt::format(" #{}", i + 1);
      names.push_back(name);
    }
  }

  template <typename Read>
  bool differ(Read read) const {
    return std::ranges::any_of(
        out_.cards, [&](const ModelCard& card) { return read(card) != read(out_.cards.front()); });
  }

  // What is measured or counted otherwise is not held against the first.
  bool is_comparable(const MetricInfo& info, const ModelCard& card) const {
    const ModelCard& first = out_.cards.front();
    if (is_by_convention(info.key) && card.convention != first.convention) return false;
    return !is_timed(info.key) || card.simulated == first.simulated;
  }

  ComparedMetric row_of(const MetricInfo& info) {
    ComparedMetric row{info, {}};
    for (const ModelCard& card : out_.cards) {
      ComparedMetric::Side& side = row.models.emplace_back();
      const auto metric = std::ranges::find_if(
          card.metrics, [&](const MetricValue& each) { return each.info.key == info.key; });
      if (metric == card.metrics.end()) continue;
      if (metric->info.unit != info.unit) {
        out_.notes.push_back(fmt::format("{} of {} is in {}, not in {}: it is left out", info.name,
                                         card.name, metric->info.unit, info.unit));
        continue;
      }
      side.value = metric->value;
      const auto& first = row.models.front().value;
      const bool is_first = row.models.size() == 1;
      if (is_first || !first || !side.value || !is_comparable(info, card)) continue;
      const Judgement judgement = judge(info, *first, *side.value);
      side.score = judgement.score;
      side.verdict = judgement.verdict;
    }
    return row;
  }

  void note_differences() {
    if (differ([](const ModelCard& card) { return card.device; }))
      out_.notes.emplace_back("the models ran on different devices");
    if (differ([](const ModelCard& card) { return card.batch_size; })) {
      out_.notes.emplace_back(
          "the batches were of different sizes: what a call computes and takes is, too");
    }
    if (differ([](const ModelCard& card) { return card.convention; })) {
      out_.notes.emplace_back(
          "the models were counted by different conventions: what was counted is not compared");
    }
    if (differ([](const ModelCard& card) { return card.simulated; })) {
      out_.notes.emplace_back(
          "some of the models ran on a simulated GPU, others did not: times are not compared");
    }
  }

  CardComparison out_;
};

}  // namespace
}  // namespace cards

CardComparison compare_cards(std::vector<ModelCard> cards) {
  return cards::Comparer(std::move(cards)).compare();
}

}  // namespace layertrace
