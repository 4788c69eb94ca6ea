// What a packet sequence has told of so far, and its track events by it: ids become names, layers
// and causes again.
#pragma once

#include <perfetto.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribute/span.h"
#include "perfetto/format.h"
#include "perfetto/sequence.h"

namespace layertrace {

inline std::string_view view(protozero::ConstChars chars) { return {chars.data, chars.size}; }

// Interned ids are dense and come in order, so a vector will do; one far beyond the others (a
// damaged file) is ignored.
template <typename T>
class InternedTable {
 public:
  void set(std::uint64_t id, T value) {
    if (id > values_.size() + kMaxHole) return;
    if (id >= values_.size()) values_.resize(id + 1);
    values_[id] = std::move(value);
  }
  T* find(std::uint64_t id) { return id < values_.size() ? &values_[id] : nullptr; }

 private:
  static constexpr std::uint64_t kMaxHole = 64;
  std::vector<T> values_;
};

struct InternedName {
  std::string_view text;
  NameId id = kNoName;  // looked up when a span first needs it
};

struct InternedString {
  std::string_view text;
  LayerId layer = kNoLayer;
  Cause cause = Cause::kNone;
};

struct SequenceState {
  bool started = false;
  std::uint64_t last_ns = 0;
  InternedTable<InternedName> names;
  InternedTable<std::uint8_t> categories;
  InternedTable<InternedString> strings;
  InternedTable<annotation::Id> annotations;
};

inline constexpr std::uint8_t kNoCategory = 0xff;

// The fields of one track event that we know.
struct Event {
  std::uint64_t type = 0;
  std::uint64_t track = 0;
  std::uint64_t name_iid = 0;
  std::uint64_t call = 0;
  std::uint8_t category = kNoCategory;
  LayerId layer = kNoLayer;
  Cause cause = Cause::kNone;
  std::uint64_t sequence = 0;
  std::optional<std::uint64_t> window;
  std::optional<std::uint64_t> step;
  std::uint64_t dropped = 0;
  bool accumulates = false;
  bool region = false;
  bool partial = false;
  EndedBy ended_by = EndedBy::kExit;
  // Of what a device did, and who asked for it.
  std::string_view kind;
  std::uint64_t launch_ns = 0;
  std::uint32_t launch_tid = 0;
  DeviceActivity what;
  // Of the time that a layer took on a stream.
  std::uint64_t host_ns = 0;
  std::uint32_t depth = 0;
  std::uint64_t counter_value = 0;
  // Of what was counted. A block's bytes, and an operator's, are where a copy's are.
  std::optional<std::uint64_t> flops;
  std::optional<std::uint64_t> flops_causal;
  OpAmounts amounts;
  std::optional<std::string_view> input;
  std::optional<std::string_view> output;
  std::optional<std::uint64_t> key;
  bool counted = false;
  std::optional<std::uint64_t> address;
  bool freed = false;
  std::uint32_t device = kHostDevice;

  Phase phase() const {
    return category < kPhaseCount ? static_cast<Phase>(category) : Phase::kOther;
  }
};

class EventParser {
 public:
  explicit EventParser(Dictionary& dictionary);

  // A layer's definition; its path is a view into the file, as all texts here are.
  void add_layer(std::string_view path, LayerDef layer);
  std::optional<LayerId> find_layer(std::string_view path) const;

  void on_interned_data(SequenceState& sequence, protozero::ConstBytes bytes);
  Event parse(SequenceState& sequence, protozero::ConstBytes bytes) const;
  // kNoName where there is no such id: damaged, or without a name.
  NameId name(SequenceState& sequence, std::uint64_t iid);
  NameId name(std::string_view text);

 private:
  Dictionary& dictionary_;
  std::unordered_map<std::string_view, LayerId> layers_;  // by path
  std::unordered_map<std::string_view, NameId> names_;
  std::unordered_map<std::string_view, Cause> causes_;
};

}  // namespace layertrace
