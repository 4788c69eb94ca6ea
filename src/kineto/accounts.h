// What became of each event of the source: kept, part of another, or left out for a reason.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <layertrace/profile.h>

namespace layertrace::kineto {

enum class Reason : std::uint8_t {
  kPythonFrame,
  kIdleCall,
  kSynchronisation,
  kDeviceAnnotation,
  kOverhead,
  kMarker,
  kInstant,
  kHostMemory,
  kCounter,
  kUnknownCategory,
  kUnknownKind,
  kNoTime,
  kNotANumber,
  kNegative,
  kOutOfRange,
  kUnpaired,
  kTooMany,
};
inline constexpr std::size_t kReasonCount = 17;
std::string_view reason_text(Reason reason) noexcept;

class Accounts {
 public:
  void keep() noexcept { ++kept_; }
  void merge() noexcept { ++merged_; }
  void leave_out(Reason reason) noexcept { ++left_out_[static_cast<std::size_t>(reason)]; }
  // An event that was kept is part of another after all, or left out.
  void keep_as_part() noexcept {
    --kept_;
    ++merged_;
  }
  void move_to(Reason reason) noexcept {
    --kept_;
    leave_out(reason);
  }
  // Something that a device did could not be kept.
  void reject(Reason reason) noexcept {
    leave_out(reason);
    ++rejected_[static_cast<std::size_t>(reason)];
  }

  std::uint64_t kept() const noexcept { return kept_; }
  SourceEvents summary(std::uint64_t events) const;
  std::vector<Unattributed> rejected() const { return listed(rejected_); }

 private:
  using Counts = std::array<std::uint64_t, kReasonCount>;
  static std::vector<Unattributed> listed(const Counts& counts);

  std::uint64_t kept_ = 0;
  std::uint64_t merged_ = 0;
  Counts left_out_{};
  Counts rejected_{};
};

}  // namespace layertrace::kineto
