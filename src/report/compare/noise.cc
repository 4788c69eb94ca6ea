#include "report/compare/noise.h"

#include <algorithm>
#include <cmath>

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

double squared(double value) { return value * value; }

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

Band band_of(const Stat& stat) {
  return {std::max(stat.min, stat.mean - 2 * stat.stdev),
          std::min(stat.max, stat.mean + 2 * stat.stdev)};
}

double chance_of_t(double t, double degrees) {
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double chance_of(const Sample& before, const Sample& after) {
  const Band old_band = band_of(before.stat);
  const Band new_band = band_of(after.stat);
  if (new_band.low <= old_band.high && old_band.low <= new_band.high) return 1;
  const auto n = [](const Sample& sample) { return static_cast<double>(sample.steps); };
  const double old_error = squared(before.stat.stdev) / n(before);
  const double new_error = squared(after.stat.stdev) / n(after);
  const double error = old_error + new_error;
  if (error == 0) return 0;  // steps that do not differ at all: a simulated clock's
  const double degrees =
      squared(error) / (squared(old_error) / (n(before) - 1) + squared(new_error) / (n(after) - 1));
  return chance_of_t((after.stat.mean - before.stat.mean) / std::sqrt(error), degrees);
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
