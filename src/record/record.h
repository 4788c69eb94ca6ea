// The one record that hooks write: 32 bytes, fixed, trivially copyable. Begin and end of a thing
// are two records of the same thread, properly nested, so that writing needs no look-up and reading
// needs no search.
#pragma once

#include <cstdint>
#include <type_traits>

#include "record/ids.h"

namespace layertrace {

enum class RecordKind : std::uint8_t {
  kScopeBegin,   // id: layer; sequence: autograd's next node number on this thread
  kScopeEnd,     // sequence
  kRegionBegin,  // id: name; flags: a Phase, or kNoPhase
  kRegionEnd,
  kNodeBegin,  // id: name; value: NodeRef; sequence
  kNodeEnd,    // sequence
  kOpBegin,    // id: name; flags: kOpComposite
  kOpEnd,
  kStep,    // value: the index of the step that ends here
  kWindow,  // flags: 1 recording starts here, 0 it stops; value: the index of the step that begins
  kGap,     // value: how many records of this thread were dropped just before
  // While operators are counted (see amounts.h).
  kAmounts,  // id: the operator's name; flags: see AmountsPart; value, sequence: amounts
  kShapes,   // id: the name that tells them; flags: 1 for what comes out of the innermost scope
  kCounted,  // value: what the calls that follow are alike in; flags: 1 if operators are counted
  kMemory,   // value: the block's address; sequence: its bytes; id: the device; flags: 1 for freed
};

inline constexpr std::uint8_t kThrown = 1;  // on an end: left by an exception
inline constexpr std::uint8_t kOpComposite =
    1;  // on kOpBegin: has no kernel of its own, only calls other operators
inline constexpr std::uint8_t kAccumulates =
    1;  // on kNodeBegin: value is the parameter's address, not a NodeRef
inline constexpr std::uint8_t kEngineRoot =
    2;  // on kNodeBegin: the node with which autograd starts a pass
inline constexpr std::uint8_t kNoPhase = 0xff;
inline constexpr std::uint32_t kHostDevice = 0xffffffffU;  // on kMemory: the host's own memory

struct Record {
  std::uint64_t ticks;
  std::uint64_t value;
  std::uint64_t sequence;
  std::uint32_t id;
  RecordKind kind;
  std::uint8_t flags;
  std::uint16_t window;  // on begins: the stretch of recording, so that what another stretch left
                         // open is not met again
};
static_assert(sizeof(Record) == 32 && std::is_trivially_copyable_v<Record>);

constexpr bool is_begin(RecordKind kind) noexcept {
  return kind == RecordKind::kScopeBegin || kind == RecordKind::kRegionBegin ||
         kind == RecordKind::kNodeBegin || kind == RecordKind::kOpBegin;
}

// Records are numbered for devices, which know by it what ran when they were asked for something.
// Operators and what is counted of them, of which there are many, change nothing in that; gaps are
// no events of the thread.
constexpr bool has_number(RecordKind kind) noexcept {
  return kind != RecordKind::kOpBegin && kind != RecordKind::kOpEnd && kind < RecordKind::kGap;
}

// Names an autograd node by what autograd itself keeps: its number, and the thread whose counter
// gave it. 2⁴⁰ nodes and 2²⁴ threads fit; a node beyond them is packed as kUnknownNode and reported
// as unattributed rather than misplaced.
struct NodeRef {
  std::uint64_t sequence = 0;
  std::uint64_t thread = 0;
};

inline constexpr std::uint64_t kUnknownNode = ~std::uint64_t{0};

constexpr std::uint64_t pack(NodeRef node) noexcept {
  if (node.sequence >= (std::uint64_t{1} << 40) || node.thread >= (std::uint64_t{1} << 24))
    return kUnknownNode;
  return node.sequence << 24 | node.thread;
}
constexpr NodeRef unpack_node(std::uint64_t value) noexcept {
  return {value >> 24, value & 0xffffffU};
}

}  // namespace layertrace
