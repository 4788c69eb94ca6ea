// The last calls into a device's API, by the number that ties them to what they asked for. Numbers
// count up, but most belong to calls that nobody records: so the calls lie one behind the other, in
// the order in which they came, and each bucket of a table holds the chain of its own. The chains
// lie apart from the calls, so that going through one touches little memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "record/device_record.h"

namespace layertrace {

class CallTable {
 public:
  struct Call {
    std::uint64_t scope = 0;
    DeviceLaunch launch;
    bool launched = false;
    bool told = false;
    // What it has asked for, as far as that has come.
    bool served = false;
    DeviceKind kind = DeviceKind::kKernel;
  };

  // Of two to the power of so many: further ones take the place of the oldest. Small to begin with:
  // what it walks through, the program's own cores lose from their caches.
  explicit CallTable(unsigned bits = 13) : most_(std::size_t{1} << bits), buckets_(most_) {}

  // Twice as many from now on.
  void grow() {
    CallTable larger(*this, 2 * most_);
    *this = std::move(larger);
  }
  std::size_t most() const noexcept { return most_; }
  // The next one takes the place of a call that something may still ask for.
  bool would_lose() const noexcept {
    if (calls_.size() < most_) return false;
    const Call& oldest = calls_[next_ % most_];
    return oldest.launched && !oldest.told;
  }

  template <typename Predicate>
  bool any(Predicate predicate) const {
    return std::ranges::any_of(calls_, predicate);
  }

  // nullptr for one that is not there.
  Call* find(std::uint32_t correlation) noexcept {
    for (std::uint32_t at = buckets_[bucket_of(correlation)]; at != 0;) {
      const Link& link = links_[at - 1];
      if (link.correlation == correlation) return &calls_[at - 1];
      at = link.next;
    }
    return nullptr;
  }

  // Made if it is not there.
  Call& of(std::uint32_t correlation) {
    Call* known = find(correlation);
    return known != nullptr ? *known : add(correlation);
  }

 private:
  CallTable(const CallTable& other, std::size_t most) : most_(most), buckets_(most) {
    const std::size_t oldest = other.next_ - other.calls_.size();
    for (std::size_t i = oldest; i < other.next_; ++i) {
      const std::size_t at = i % other.most_;
      add(other.links_[at].correlation) = other.calls_[at];
    }
  }

  // Of the call at the same place.
  struct Link {
    std::uint32_t correlation = 0;
    std::uint32_t next = 0;  // in its bucket; one more than where it lies
  };

  std::size_t bucket_of(std::uint32_t correlation) const noexcept {
    constexpr std::uint32_t kMix = 0x9e3779b1;
    const std::uint32_t mixed = correlation * kMix;
    return (std::uint64_t{mixed} * most_) >> 32;
  }

  Call& add(std::uint32_t correlation) {
    const std::size_t at = next_ % most_;
    if (at == calls_.size()) {
      calls_.emplace_back();
      links_.emplace_back();
    } else {
      unlink(at);
      calls_[at] = {};
    }
    ++next_;
    std::uint32_t& bucket = buckets_[bucket_of(correlation)];
    links_[at] = {correlation, bucket};
    bucket = static_cast<std::uint32_t>(at + 1);
    return calls_[at];
  }

  void unlink(std::size_t at) noexcept {
    std::uint32_t* link = &buckets_[bucket_of(links_[at].correlation)];
    while (*link != at + 1) link = &links_[*link - 1].next;
    *link = links_[at].next;
  }

  std::size_t most_;
  std::size_t next_ = 0;
  std::vector<Call> calls_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> buckets_;  // the last of each; one more than where it lies
};

}  // namespace layertrace
