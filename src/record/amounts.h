// What one operator computed and moved, on its way from the hook that counts it to attribution.
//
// A record has room for two amounts, or for three of which two are small, as most are; so an
// operator's come as up to three records, one after the other. They add up: whoever reads them need
// not know which belong together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "record/ids.h"
#include "record/record.h"

namespace layertrace {

// Number formats, in the order of roofline::Dtype; kOther is none of them.
inline constexpr std::size_t kFormatCount = 9;
inline constexpr std::uint8_t kOtherFormat = 8;

struct OpAmounts {
  NameId op = kNoName;
  std::uint64_t flops = 0;
  std::uint64_t aux_flops = 0;
  std::uint64_t flops_causal = 0;
  std::uint64_t bytes = 0;
  std::uint64_t activations = 0;
  std::uint64_t fvcore_flops = 0;
  std::uint64_t fvcore_activations = 0;  // not in records: attribution finds them
  std::uint8_t format = kOtherFormat;    // of the contraction's factors
  bool is_call = true;                   // of an operator, and not what is left of one
  bool is_uncounted = false;             // there is no formula for this call

  friend bool operator==(const OpAmounts&, const OpAmounts&) = default;
};

// On kAmounts: which of them. In the upper bits the format, and whether the call is uncounted.
enum class AmountsPart : std::uint8_t { kFlops, kBytes, kOthers, kFlopsAndBytes };
inline constexpr std::uint8_t kUncounted = 0x80;

constexpr Record amounts_record(const OpAmounts& amounts, AmountsPart part,
                                std::uint64_t ticks) noexcept {
  Record record{.ticks = ticks,
                .value = amounts.flops,
                .sequence = amounts.aux_flops,
                .id = index(amounts.op),
                .kind = RecordKind::kAmounts,
                .flags = static_cast<std::uint8_t>(static_cast<unsigned>(part) |
                                                   unsigned{amounts.format} << 2U |
                                                   (amounts.is_uncounted ? kUncounted : 0U)),
                .window = 0};
  if (part == AmountsPart::kFlopsAndBytes) {
    record.sequence = amounts.aux_flops | amounts.bytes << 32U;
  } else if (part == AmountsPart::kBytes) {
    record.value = amounts.bytes;
    record.sequence = amounts.activations;
  } else if (part == AmountsPart::kOthers) {
    record.value = amounts.flops_causal;
    record.sequence = amounts.fvcore_flops;
  }
  return record;
}

constexpr OpAmounts unpack_amounts(const Record& record) noexcept {
  OpAmounts amounts{.op = NameId{record.id},
                    .format = static_cast<std::uint8_t>(record.flags >> 2U & 0xfU)};
  const auto part = static_cast<AmountsPart>(record.flags & 3U);
  amounts.is_call = part == AmountsPart::kFlops || part == AmountsPart::kFlopsAndBytes;
  amounts.is_uncounted = amounts.is_call && (record.flags & kUncounted) != 0;
  switch (part) {
    case AmountsPart::kFlops:
      amounts.flops = record.value;
      amounts.aux_flops = record.sequence;
      break;
    case AmountsPart::kFlopsAndBytes:
      amounts.flops = record.value;
      amounts.aux_flops = record.sequence & 0xffff'ffffU;
      amounts.bytes = record.sequence >> 32U;
      break;
    case AmountsPart::kBytes:
      amounts.bytes = record.value;
      amounts.activations = record.sequence;
      break;
    case AmountsPart::kOthers:
      amounts.flops_causal = record.value;
      amounts.fvcore_flops = record.sequence;
      break;
  }
  return amounts;
}

// As few records as hold them all, in the order in which attribution takes them.
template <typename Take>
constexpr void for_each_record(OpAmounts amounts, std::uint64_t ticks, const Take& take) {
  constexpr std::uint64_t kSmall = 0xffff'ffff;
  if (amounts.aux_flops <= kSmall && amounts.bytes <= kSmall) {
    take(amounts_record(amounts, AmountsPart::kFlopsAndBytes, ticks));
    amounts.bytes = 0;
  } else {
    take(amounts_record(amounts, AmountsPart::kFlops, ticks));
  }
  if (amounts.bytes != 0 || amounts.activations != 0)
    take(amounts_record(amounts, AmountsPart::kBytes, ticks));
  if (amounts.flops_causal != 0 || amounts.fvcore_flops != 0)
    take(amounts_record(amounts, AmountsPart::kOthers, ticks));
}

}  // namespace layertrace
