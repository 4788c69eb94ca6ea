// Is a difference between two runs more than what their steps differ by anyway?
#pragma once

#include <cstdint>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/report.h>

namespace layertrace::comparison {

// Beyond noise, or in what is counted.
inline bool is_change(Verdict verdict) noexcept {
  return verdict != Verdict::kUnknown && verdict != Verdict::kSame &&
         verdict != Verdict::kWithinNoise;
}

// A figure of one run, over its steps.
struct Sample {
  Stat stat;
  std::uint64_t steps = 0;
};

// Two at once: means and extremes add up, and so do deviations, since what slows a step slows all
// of it.
Stat operator+(const Stat& a, const Stat& b);
Stat operator*(const Stat& stat, double factor);

// Where the steps lie: two deviations around the mean, as far as there are steps.
struct Band {
  double low = 0;
  double high = 0;
};
Band band_of(const Stat& stat);

// How likely steps of one and the same program would differ by as much: Welch's test, both ways. 1
// where the bands of the two meet.
double chance_of(const Sample& before, const Sample& after);

// The same of Student's t with so many degrees of freedom.
double chance_of_t(double t, double degrees);

// Which of these are taken to be no chance, if of equal runs none shall be in all but this share of
// comparisons: by the procedure of Benjamini and Hochberg, those up to the returned one.
double largest_believed(std::vector<double> chances, double error_rate);

}  // namespace layertrace::comparison
