// Why had the GPU nothing to do? A gap in what a device did ends with an activity that some thread
// asked for, so the gap is that thread's: it is divided by where the thread was (which layer and
// phase, waiting, copying) until the activity began. From asking on it waits for nothing else.
//
// What a device did comes later than what the host did and in no particular order, so both are kept
// by step, and the work is done when a step is folded. How much is kept is bounded.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/span.h"
#include "attribute/step_sums.h"

namespace layertrace {

class DeviceIdle {
 public:
  // Of one step, what a device did is kept up to so many activities; then the older half of the
  // step is settled.
  explicit DeviceIdle(std::size_t most_activities = std::size_t{1} << 17)
      : most_activities_(most_activities) {}

  // From now on the thread is in this layer (or in none) and phase. In order of time.
  void move(std::uint32_t tid, std::uint64_t ns, LayerId layer, Phase phase);
  void activity(const DeviceSpan& span);
  void call(const LaunchSpan& span);

  // Steps, one after the other; several may have ended and not be folded.
  void begin_step(std::uint64_t ns);
  void end_step(std::uint64_t ns, std::uint32_t tid);  // by this thread
  void drop_last_step() { steps_.pop_back(); }
  // Takes the oldest step, which has ended: adds to the cells' idle time, and tells of each device
  // that has done anything until then.
  std::vector<DeviceStep> fold_oldest(StepSums& sums);

  // Of all steps that were folded, the longest first.
  std::vector<Idle> idle(std::uint64_t steps) const;

 private:
  // An activity as far as it matters here.
  struct Ran {
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
    std::uint64_t launch_ns = 0;
    std::uint32_t launch_tid = 0;
    LayerId layer = kNoLayer;
    Phase phase = Phase::kOther;
    bool is_copy = false;
    bool is_communication = false;

    friend auto operator<=>(const Ran&, const Ran&) = default;
  };
  // A call in which a thread waited or copied.
  struct Call {
    std::uint32_t tid = 0;
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
    CallKind kind = CallKind::kWait;

    friend auto operator<=>(const Call&, const Call&) = default;
  };
  struct Change {
    std::uint64_t ns = 0;
    LayerId layer = kNoLayer;
    Phase phase = Phase::kOther;
  };
  // Where a thread was.
  struct Timeline {
    std::deque<Change> changes;
    std::size_t at = 0;  // the change that was looked at last
  };
  // What is charged to one layer, phase and cause.
  struct Charge {
    std::uint64_t ns = 0;
    std::uint64_t gaps = 0;
    std::uint64_t last_gap = 0;
  };
  using Charges = std::vector<Charge>;  // by the number of their key
  struct Device {
    DeviceStep sums;
    std::uint64_t settled_ns = 0;  // up to here it is in the sums
    std::vector<Ran> ran;
  };
  struct OpenStep {
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = ~std::uint64_t{0};
    std::uint64_t latest_ns = 0;  // start of what came last
    std::uint32_t tid = 0;        // of the thread that ended it
    std::vector<Device> devices;
    std::vector<Call> calls;
    Charges charges;
  };

  OpenStep* step_of(std::uint64_t start_ns, std::uint64_t end_ns);
  Device& device_of(OpenStep& step, std::uint32_t device);
  void add(OpenStep& step, std::uint32_t device, const Ran& ran);
  void hand_over(OpenStep& from, OpenStep& to);
  void settle_half(OpenStep& step, Device& device);
  void settle(OpenStep& step, Device& device, std::uint64_t until_ns);
  void charge_gap(OpenStep& step, std::uint64_t start_ns, const Ran& next);
  void charge_host(OpenStep& step, std::uint32_t tid, std::uint64_t start_ns, std::uint64_t end_ns,
                   bool before_copy);
  Timeline* timeline_of(std::uint32_t tid);
  void charge_latency(OpenStep& step, const Ran& next, std::uint64_t asked_ns);
  static Change place_at(Timeline* timeline, std::uint64_t ns, std::uint64_t& until_ns);
  static std::optional<CallKind> call_at(const std::vector<Call>& calls, std::uint32_t tid,
                                         std::uint64_t ns, std::uint64_t& until_ns);
  std::size_t number_of(std::uint64_t key);
  void charge(OpenStep& step, LayerId layer, Phase phase, IdleCause cause, std::uint64_t ns);
  void forget_until(std::uint64_t ns);

  std::size_t most_activities_;
  std::unordered_map<std::uint32_t, Timeline> timelines_;  // by thread
  std::deque<OpenStep> steps_;
  std::vector<std::uint32_t> known_;                        // devices that have done anything
  std::uint64_t gap_ = 0;                                   // the number of the one that is charged
  std::unordered_map<std::uint64_t, std::size_t> numbers_;  // of the keys that were charged
  std::vector<std::uint64_t> keys_;                         // by number
  std::uint64_t last_key_ = ~std::uint64_t{0};
  std::size_t last_number_ = 0;
  Charges charges_;
  std::vector<std::vector<Ran>> spares_;  // empty lists, for their memory
};

}  // namespace layertrace
