// Conditions on a comparison, for CI: "forward_ms > +5%".
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>

#include "report/compare/metrics.h"
#include "report/text.h"

namespace layertrace {
namespace comparison {
namespace {

constexpr const char* kForm =
    "Write METRIC > LIMIT, as in 'forward_ms > +5%', 'total_ms@encoder > 2.5' or "
    "'memory_bytes > +1e6'";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// "+5%", "-0.5", "2e9".
bool parse_limit(std::string_view text, Condition& condition) {
  if (text.ends_with('%')) {
    condition.is_share = condition.is_change = true;
    text = trimmed(text.substr(0, text.size() - 1));
  }
  const bool is_signed = text.starts_with('+') || text.starts_with('-');
  condition.is_change |= is_signed;
  const bool is_negative = text.starts_with('-');
  if (is_signed) text.remove_prefix(1);
  const auto value = number(text);
  if (!value || (is_signed && (text.starts_with('+') || text.starts_with('-')))) return false;
  condition.limit = is_negative ? -*value : *value;
  return true;
}

// Before the key of a metric that users gave to the runs.
constexpr std::string_view kRunMetrics = "metrics.";

std::string valid_metrics() {
  std::vector<std::string_view> names;
  for (const Metric& metric : metrics()) names.push_back(metric.name);
  return fmt::format("{}, {}KEY", fmt::join(names, ", "), kRunMetrics);
}

}  // namespace
}  // namespace comparison

Result<Condition> parse_condition(std::string_view text) {
  using namespace comparison;
  const std::string tried = fmt::format("cannot check \"{}\"", report::clean(text, false));
  const std::size_t sign = text.find_first_of("<>");
  if (sign == std::string_view::npos) return Error{tried, "it has neither > nor <", kForm};
  Condition condition;
  condition.text = trimmed(text);
  condition.is_greater = text[sign] == '>';
  const std::string_view subject = trimmed(text.substr(0, sign));
  const std::size_t at = subject.find('@');
  condition.metric = trimmed(subject.substr(0, at));
  if (at != std::string_view::npos) condition.layer = trimmed(subject.substr(at + 1));
  const auto has_name = [&](const Metric& metric) { return metric.name == condition.metric; };
  const bool is_of_run =
      condition.metric.starts_with(kRunMetrics) && condition.metric.size() > kRunMetrics.size();
  if (!is_of_run && std::ranges::none_of(comparison::metrics(), has_name)) {
    return Error{tried,
                 fmt::format("there is no figure \"{}\"", report::clean(condition.metric, false)),
                 "Use one of: " + valid_metrics()};
  }
  if (!parse_limit(trimmed(text.substr(sign + 1)), condition))
    return Error{tried, "its limit is no number", kForm};
  return condition;
}

Result<std::string> check_condition(const Comparison& comparison, const Condition& condition) {
  const std::string tried = fmt::format("cannot check \"{}\"", condition.text);
  const bool is_total = condition.layer.empty();
  const auto row = std::ranges::find_if(comparison.rows, [&](const ComparedRow& each) {
    if (each.kind == "metric")
      return is_total && condition.metric == std::string(comparison::kRunMetrics) + each.metric;
    return each.metric == condition.metric && each.name == condition.layer &&
           each.kind == (is_total ? "total" : "layer");
  });
  const std::string subject =
      is_total ? condition.metric : condition.metric + " of " + condition.layer;
  if (row == comparison.rows.end() || !row->runs.back().known || row->runs.size() < 2) {
    return Error{tried, "the runs have no " + subject + " in common",
                 "`layertrace compare --all` shows what they have"};
  }
  const ComparedFigure& before = row->runs.front();
  const ComparedFigure& after = row->runs.back();
  if (condition.is_change && !before.known)
    return Error{tried, "the first run has no " + subject, "Compare runs that both have it"};
  double found = after.value;
  if (condition.is_change)
    found = condition.is_share ? after.change * 100 : after.value - before.value;
  const bool holds = condition.is_greater ? found > condition.limit : found < condition.limit;
  if (!holds) return std::string();
  if (condition.is_change && after.verdict == Verdict::kUnknown) {
    return Error{tried, "how much " + subject + " varies from step to step is not known",
                 "Record two steps or more in each run"};
  }
  // Asked of alone, a figure is not held to what is asked of all together.
  constexpr double kErrorRate = 0.05;
  const bool is_believed = comparison::is_change(after.verdict) || after.chance <= kErrorRate;
  if (condition.is_change && !is_believed) return std::string();
  const std::string unit = row->unit.empty() ? "" : " " + row->unit;
  if (!condition.is_change) {
    return fmt::format("{}: {} of {} is {:.6g}{}", condition.text, subject, comparison.names.back(),
                       after.value, unit);
  }
  const std::string change =
      std::isfinite(after.change) ? fmt::format(" ({:+.1f} %)", after.change * 100) : "";
  return fmt::format("{}: {} went from {:.6g} to {:.6g}{}{}", condition.text, subject, before.value,
                     after.value, unit, change);
}

}  // namespace layertrace
