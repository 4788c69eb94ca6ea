// The last calls into a device's API, by the number that ties them to what they asked for. Numbers
// count up, but most belong to calls that nobody records: so the calls lie one behind the other, in
// the order in which they came, and each bucket of a table holds the chain of its own.
#pragma once

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
    std::uint32_t correlation = 0;
    bool launched = false;
    bool told = false;
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
    if (entries_.size() < most_) return false;
    const Call& oldest = entries_[next_ % most_].call;
    return oldest.launched && !oldest.told;
  }

  // nullptr for one that is not there.
  Call* find(std::uint32_t correlation) noexcept {
    for (std::uint32_t at = buckets_[bucket_of(correlation)]; at != 0;) {
      Entry& entry = entries_[at - 1];
      if (entry.call.correlation == correlation) return &entry.call;
      at = entry.next;
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
    const std::size_t oldest = other.next_ - other.entries_.size();
    for (std::size_t i = oldest; i < other.next_; ++i) {
      const Call& call = other.entries_[i % other.most_].call;
      add(call.correlation) = call;
    }
  }

  struct Entry {
    Call call;
    std::uint32_t next = 0;  // in its bucket; one more than where it lies
  };

  std::size_t bucket_of(std::uint32_t correlation) const noexcept {
    constexpr std::uint32_t kMix = 0x9e3779b1;
    const std::uint32_t mixed = correlation * kMix;
    return (std::uint64_t{mixed} * most_) >> 32;
  }

  Call& add(std::uint32_t correlation) {
    const std::size_t at = next_ % most_;
    if (at == entries_.size()) {
      entries_.emplace_back();
    } else {
      unlink(at);
    }
    ++next_;
    Entry& entry = entries_[at];
    std::uint32_t& bucket = buckets_[bucket_of(correlation)];
    entry = {{.launch = {}, .correlation = correlation}, bucket};
    bucket = static_cast<std::uint32_t>(at + 1);
    return entry.call;
  }

  void unlink(std::size_t at) noexcept {
    std::uint32_t* link = &buckets_[bucket_of(entries_[at].call.correlation)];
    while (*link != at + 1) link = &entries_[*link - 1].next;
    *link = entries_[at].next;
  }

  std::size_t most_;
  std::size_t next_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> buckets_;  // the last of each; one more than where it lies
};

}  // namespace layertrace
