// Records written and read by hand.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "record/drain.h"
#include "record/record.h"
#include "record/thread_buffer.h"

namespace layertrace::test {

inline Record made(RecordKind kind, std::uint64_t ticks, std::uint64_t value = 0) {
  return {ticks, value, 0, 0, kind, 0, 0};
}
inline Record op_begin(std::uint64_t ticks, std::uint64_t value = 0) {
  return made(RecordKind::kOpBegin, ticks, value);
}
inline Record op_end(std::uint64_t ticks, std::uint64_t value = 0) {
  return made(RecordKind::kOpEnd, ticks, value);
}
inline Record step_mark(std::uint64_t ticks, std::uint64_t value = 0) {
  return made(RecordKind::kStep, ticks, value);
}

// All that can be read from the buffer now; it is then read.
inline std::vector<Record> take(ThreadBuffer& buffer) {
  std::vector<std::span<const Record>> spans;
  buffer.unread(spans);
  std::vector<Record> records;
  for (const auto span : spans) records.insert(records.end(), span.begin(), span.end());
  buffer.consume(records.size());
  return records;
}

// What a list of records says of itself: how many of what, and whether begins and ends fit.
struct Tally {
  std::uint64_t records = 0;  // without the gaps' marks
  std::uint64_t begins = 0;
  std::uint64_t ends = 0;
  std::uint64_t marks = 0;
  std::uint64_t gaps = 0;
  std::uint64_t gap_total = 0;  // what the gaps' marks say
  std::int64_t open = 0;
  bool nested = true;  // never an end without its begin

  void add(const Record& record) {
    if (record.kind == RecordKind::kGap) {
      ++gaps;
      gap_total += record.value;
      return;
    }
    ++records;
    if (is_begin(record.kind)) {
      ++begins;
      ++open;
    } else if (record.kind == RecordKind::kStep || record.kind == RecordKind::kWindow) {
      ++marks;
    } else {
      ++ends;
      if (--open < 0) nested = false;
    }
  }
  void add(std::span<const Record> all) {
    for (const Record& record : all) add(record);
  }
};

inline Tally tally(std::span<const Record> records) {
  Tally result;
  result.add(records);
  return result;
}

// Keeps what a drain hands over.
class KeepingConsumer : public RecordConsumer {
 public:
  void refresh() override {}
  void open_lane(Lane lane, std::uint64_t key, std::uint64_t /*tid*/,
                 const std::string& /*name*/) override {
    keys[lane] = key;
  }
  void close_lane(Lane lane) override { closed.push_back(lane); }
  void index(Lane lane, std::span<const Record> records) override {
    indexed[lane].insert(indexed[lane].end(), records.begin(), records.end());
  }
  void resolve(Lane lane, std::span<const Record> records) override {
    for (const Record& record : records) {
      resolved[lane].push_back(record);
      order.push_back({lane, record});
    }
    // Whatever is resolved was indexed before.
    if (resolved[lane].size() > indexed[lane].size()) index_was_late = true;
  }

  struct Resolved {
    Lane lane;
    Record record;
  };
  std::map<Lane, std::uint64_t> keys;
  std::map<Lane, std::vector<Record>> indexed;
  std::map<Lane, std::vector<Record>> resolved;
  std::vector<Resolved> order;
  std::vector<Lane> closed;
  bool index_was_late = false;
};

}  // namespace layertrace::test
