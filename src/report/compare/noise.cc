#include "report/compare/noise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

namespace layertrace::comparison {
namespace {

// The regularised incomplete beta function, by its continued fraction (modified Lentz).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  constexpr double kTiny = 1e-300;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  const auto apply = [&](double term) {
    d = 1 / away_from_zero(1 + term * d);
    c = away_from_zero(1 + term / c);
    fraction *= c * d;
    return c * d;
  };
  constexpr int kMostTerms = 500;
  for (int m = 1; m <= kMostTerms; ++m) {
    apply(m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)));
    const double factor = apply(-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)));
    if (std::abs(factor - 1) < 1e-14) break;
  }
  const double logarithm =
      std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x);
  return std::exp(logarithm) * fraction / a;
}

struct Shift {
  double size = 0;  // logarithm of the time
  double away = 0;  // of the ratio's logarithm from what its phase has in common
  double weight = 0;
};

using Weighted = std::vector<std::pair<double, double>>;  // values with their weights

// The most of the weight that one value has. Else the median is what the largest piece changed by,
// and all others seem to scatter by as much.
constexpr double kMostShare = 0.2;

// Cuts the largest weights to one and the same, of which each is that share of what is then the
// sum.
void limit_weights(Weighted& values) {
  std::ranges::sort(values, std::greater(), &Weighted::value_type::second);
  const double share = std::max(kMostShare, 1 / static_cast<double>(values.size()));
  double rest = 0;
  for (const auto& [value, weight] : values) rest += weight;
  for (std::size_t cut = 0; cut < values.size(); ++cut) {
    const double limit = share * rest / (1 - share * static_cast<double>(cut));
    if (values[cut].second <= limit || cut + 1 == values.size()) {
      for (std::size_t i = 0; i < cut; ++i) values[i].second = std::min(values[i].second, limit);
      return;
    }
    rest -= values[cut].second;
  }
}

// Where half of the weight is; between two halves, the value that is nearer to 0.
double weighted_median(Weighted values) {
  if (values.empty()) return 0;
  limit_weights(values);
  std::ranges::sort(values);
  double all = 0;
  for (const auto& [value, weight] : values) all += weight;
  constexpr double kRounding = 1e-9;
  double so_far = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    so_far += values[i].second;
    if (so_far < (0.5 - kRounding) * all) continue;
    const bool is_between = so_far < (0.5 + kRounding) * all && i + 1 < values.size();
    const double next = is_between ? values[i + 1].first : values[i].first;
    return std::abs(next) < std::abs(values[i].first) ? next : values[i].first;
  }
  return 0;
}

// Of a normal distribution the deviation is 1.48 times the median of what is away from the middle.
// Times have heavier tails: with this factor 5 % of all pairs of 40 equal runs, made within half an
// hour on a busy machine, show a change (bench/compare_noise.py).
constexpr double kScatterPerMedian = 1.8;
constexpr double kLeastScatter = 0.02;  // nobody's times are the same to within less
// Of 20 recorded pairs of equal runs, no step differs undisturbed by more than this, even where all
// steps of the one took longer than all of the other's.
constexpr double kMostOfEqualRuns = 0.1;
constexpr std::size_t kLeastNeighbours = 12;
constexpr std::size_t kMostKnots = 48;

}  // namespace

Stat operator+(const Stat& a, const Stat& b) {
  return {.mean = a.mean + b.mean,
          .min = a.min + b.min,
          .max = a.max + b.max,
          .median = a.median + b.median,
          .stdev = a.stdev + b.stdev};
}

Stat operator*(const Stat& stat, double factor) {
  return {.mean = stat.mean * factor,
          .min = stat.min * factor,
          .max = stat.max * factor,
          .median = stat.median * factor,
          .stdev = stat.stdev * factor};
}

double middle_of(const Stat& stat) { return stat.median > 0 ? stat.median : stat.mean; }

RunNoise::RunNoise(const std::vector<Piece>& pieces) {
  const auto change_of = [](const Piece& piece) { return std::log(piece.after / piece.before); };
  const auto weight_of = [](const Piece& piece) { return std::sqrt(piece.before * piece.after); };
  std::array<Weighted, kPhaseCount> changes;
  Weighted increases;
  Weighted decreases;
  for (const Piece& piece : pieces) {
    const auto phase = static_cast<std::size_t>(piece.phase);
    changes[phase].emplace_back(change_of(piece), weight_of(piece));
    weight_[phase] += weight_of(piece);
    (change_of(piece) > 0 ? increases : decreases)
        .emplace_back(std::abs(change_of(piece)), weight_of(piece));
  }
  scatter_up_ = kScatterPerMedian * weighted_median(std::move(increases));
  scatter_down_ = kScatterPerMedian * weighted_median(std::move(decreases));
  for (std::size_t i = 0; i < kPhaseCount; ++i) common_[i] = weighted_median(std::move(changes[i]));
  std::vector<Shift> shifts;
  Weighted away;
  for (const Piece& piece : pieces) {
    const double common = common_[static_cast<std::size_t>(piece.phase)];
    const double weight = weight_of(piece);
    shifts.push_back({std::log(weight), std::abs(change_of(piece) - common), weight});
    away.emplace_back(shifts.back().away, weight);
  }
  whole_scatter_ = kScatterPerMedian * weighted_median(std::move(away));
  std::ranges::sort(shifts, {}, &Shift::size);
  const std::size_t count = shifts.size();
  const std::size_t width = std::min(count, std::max(kLeastNeighbours, count / 4));
  const std::size_t knots = std::min(kMostKnots, count);
  for (std::size_t knot = 0; knot < knots; ++knot) {
    const std::size_t at = knots == 1 ? 0 : knot * (count - 1) / (knots - 1);
    const std::size_t first = std::min(at - std::min(at, width / 2), count - width);
    std::vector<double> near;
    for (std::size_t i = first; i < first + width; ++i) near.push_back(shifts[i].away);
    const auto middle = near.begin() + static_cast<std::ptrdiff_t>((width - 1) / 2);
    std::ranges::nth_element(near, middle);
    knots_.push_back({shifts[at].size, kScatterPerMedian * *middle});
  }
}

double RunNoise::common(const std::vector<Phase>& phases) const {
  double sum = 0;
  double weight = 0;
  for (const Phase phase : phases) {
    const auto i = static_cast<std::size_t>(phase);
    sum += common_[i] * weight_[i];
    weight += weight_[i];
  }
  return weight > 0 ? sum / weight : 0;
}

double RunNoise::scatter(double ns) const {
  const double size = std::log(ns);
  double local = 0;
  double nearest = HUGE_VAL;
  for (const Knot& knot : knots_) {
    const double distance = std::abs(knot.size - size);
    if (distance >= nearest) continue;
    nearest = distance;
    local = knot.scatter;
  }
  return std::max({kLeastScatter, whole_scatter_, local});
}

double RunNoise::scatter_against(double change) const {
  return std::max(kMostOfEqualRuns, change > 0 ? scatter_down_ : scatter_up_);
}

double chance_of_t(double t, double degrees) {
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

namespace {

// How far the middle of so many steps may be from where it would be of very many, as a share. The
// least of n steps lies about 0.8·√(2 ln n) deviations below their middle.
double error_of_middle(const TimeOfRun& time) {
  const auto n = static_cast<double>(time.steps);
  const double deviations = 0.8 * std::sqrt(2 * std::log(n));
  constexpr double kMedianPerMean = 1.25;  // of the error of a mean, for normal steps
  return kMedianPerMean * (time.middle / time.quiet - 1) / deviations / std::sqrt(n);
}

}  // namespace

double chance_of(const TimeOfRun& before, const TimeOfRun& after, double scatter, double common,
                 double min_change) {
  if (before.quiet <= 0 || after.quiet <= 0 || before.steps < 2 || after.steps < 2) return 1;
  const double change = std::log(after.quiet / before.quiet);
  const double usual_change = std::log(after.middle / before.middle);
  const double least = std::log1p(min_change);
  if (change * usual_change <= 0 || std::min(std::abs(change), std::abs(usual_change)) < least)
    return 1;
  const bool lie_apart = change > 0 ? after.quiet > before.middle : before.quiet > after.middle;
  if (!lie_apart) return 1;
  const double error = std::hypot(scatter, error_of_middle(before), error_of_middle(after));
  const double beyond = std::min(std::abs(change), std::abs(change - common));
  return chance_of_t(beyond / error, static_cast<double>(before.steps + after.steps - 2));
}

bool is_beyond_doubt(const TimeOfRun& before, const TimeOfRun& after) noexcept {
  constexpr std::uint64_t kLeastSteps = 3;
  constexpr double kTimes = 4;
  if (before.quiet <= 0 || after.quiet <= 0) return false;
  return std::min(before.steps, after.steps) >= kLeastSteps &&
         std::abs(std::log(after.quiet / before.quiet)) >= kTimes * kMostOfEqualRuns;
}

double largest_believed(std::vector<double> chances, double error_rate) {
  std::ranges::sort(chances);
  const auto count = static_cast<double>(chances.size());
  double largest = -1;
  for (std::size_t i = 0; i < chances.size(); ++i) {
    if (chances[i] <= error_rate * static_cast<double>(i + 1) / count) largest = chances[i];
  }
  return largest;
}

}  // namespace layertrace::comparison
