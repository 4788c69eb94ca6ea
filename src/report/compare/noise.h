// Is a difference between two runs more than what runs of one and the same program differ by?
//
// Steps of one run tell little of that: what slows a run down (other programs, where its memory
// lies, how fast the processor is clocked) stays for all of its steps. But most layers are the same
// in both runs. How far their times lie apart shows by how much times differ for no reason.
#pragma once

#include <array>
#include <cstddef>
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

// Two at once: what slows a step slows all of it.
Stat operator+(const Stat& a, const Stat& b);
Stat operator*(const Stat& stat, double factor);

// The median; the mean of what is not there in half of the steps.
double middle_of(const Stat& stat);

// The same piece of work in two runs: its time where nothing disturbs it.
struct Piece {
  double before = 0;
  double after = 0;
  Phase phase = Phase::kForward;
};

// Changes are logarithms of ratios: 0.18 is 20 % more.
class RunNoise {
 public:
  explicit RunNoise(const std::vector<Piece>& pieces);

  // By how much half of the work of these phases changed, and less: the machine's doing, or all of
  // it. No piece is more than a fifth of the work here, however long it takes.
  double common(const std::vector<Phase>& phases) const;

  // How far changes of pieces of about this size scatter around what their phases have in common:
  // the deviation of a normal distribution. Short times scatter more than long ones.
  double scatter(double ns) const;

  // How far pieces changed the other way than the whole did, which is no part of its change; at
  // least what the whole of equal runs differs by.
  double scatter_against(double change) const;

 private:
  struct Knot {
    double size = 0;  // logarithm of the time
    double scatter = 0;
  };
  std::array<double, kPhaseCount> common_{};
  std::array<double, kPhaseCount> weight_{};
  double whole_scatter_ = 0;
  double scatter_up_ = 0;  // of those that take longer, around no change
  double scatter_down_ = 0;
  std::vector<Knot> knots_;  // by size
};

// A time of one run, over its steps.
struct TimeOfRun {
  double quiet = 0;   // where nothing disturbs it
  double middle = 0;  // of the steps
  std::uint64_t steps = 0;
};

// How likely equal runs differ by as much. 1 where what both take undisturbed and what they take
// usually do not agree that there is a change of at least `min_change`, or where the one's usual
// time reaches the other's undisturbed. A change is held against `common`, which is none.
double chance_of(const TimeOfRun& before, const TimeOfRun& after, double scatter, double common,
                 double min_change);

// Both with three steps or more, undisturbed half as long again or more: several times what equal
// runs were seen to differ by.
bool is_beyond_doubt(const TimeOfRun& before, const TimeOfRun& after) noexcept;

// How likely is such a value or a larger one of Student's t with so many degrees of freedom, both
// ways?
double chance_of_t(double t, double degrees);

// Which of these are taken to be no chance, if of equal runs none shall be in all but this share of
// comparisons: by the procedure of Benjamini and Hochberg, those up to the returned one.
double largest_believed(std::vector<double> chances, double error_rate);

}  // namespace layertrace::comparison
