// Reads all threads' records in an order that attribution can trust.
//
// A backward node may run on one thread while the forward scope that made it is in another thread's
// buffer. Taking the buffers one after the other could show the node before the scope. So each pump
// takes stock of every buffer twice: what was committed at the first count may be resolved;
// everything up to the second count is indexed before that. A record that happened before one of
// the first count is then within the second. What is resolved is merged by time, up to a horizon
// that lies before the moment when new threads were asked for: a thread that was born later has
// nothing older to tell.
//
// Those who consume the records remember a bounded part of the past. So where much has gathered, a
// pump goes only as far as a bounded number of each thread's records reaches, and says so.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "record/record.h"
#include "record/thread_buffer.h"

namespace layertrace {

// A thread in the order of its first record: 0, 1, 2…
using Lane = std::uint32_t;

class RecordConsumer {
 public:
  virtual ~RecordConsumer() = default;
  // The time to add() threads that were born since.
  virtual void add_threads() {}
  // All that may be resolved now has been counted: the time to fetch definitions.
  virtual void refresh() = 0;
  virtual void open_lane(Lane lane, std::uint64_t key, std::uint64_t tid,
                         const std::string& name) = 0;
  // The lane's thread has ended and all its records were resolved.
  virtual void close_lane(Lane lane) = 0;
  // Called once, in the lane's order, for every record, before any record that it may explain is
  // resolved.
  virtual void index(Lane lane, std::span<const Record> records) = 0;
  // Called once for every record, in the lane's order, lanes merged by time.
  virtual void resolve(Lane lane, std::span<const Record> records) = 0;
};

class Drain {
 public:
  explicit Drain(RecordConsumer& consumer) : consumer_(consumer) {}

  void add(std::shared_ptr<ThreadBuffer> buffer);

  static constexpr std::uint64_t kMostAtOnce = std::uint64_t{1} << 14;
  static constexpr std::uint64_t kIndexedAhead = std::uint64_t{1} << 12;

  // Reads what there is from before `horizon_ticks`, a time that is past; returns the number of
  // records resolved. Buffers of ended threads are let go once empty.
  std::uint64_t pump(std::uint64_t horizon_ticks = std::numeric_limits<std::uint64_t>::max());
  // How far the last pump went: to its horizon, or less far where there was too much.
  std::uint64_t reached_ticks() const noexcept { return reached_ticks_; }

  // At the end: tells of what was dropped after a lane's last record, as lost just before this
  // time.
  void mark_open_gaps(std::uint64_t now_ticks);

  std::uint64_t recorded() const noexcept { return recorded_; }
  std::uint64_t dropped() const noexcept;

 private:
  struct Source {
    std::shared_ptr<ThreadBuffer> buffer;
    Lane lane = 0;
    std::uint64_t indexed = 0;
    std::vector<std::span<const Record>> spans;
    std::size_t span = 0;
    std::size_t offset = 0;
    std::uint64_t counted = 0;  // at the first count of this pump
    std::uint64_t left = 0;     // of these, still to be resolved
    std::uint64_t last_ticks = 0;
    std::uint64_t marked = 0;  // dropped records that a gap's mark has told of
  };

  std::uint64_t bound(std::uint64_t horizon_ticks) const;
  void index_new(Source& source, std::uint64_t until_ticks);
  void resolve_run(Source& source, std::uint64_t until_ticks);
  void tally(Source& source, std::span<const Record> records) noexcept;
  void mark_open_gap(Source& source, std::uint64_t now_ticks);
  void release_retired();

  RecordConsumer& consumer_;
  std::vector<Source> sources_;
  Lane next_lane_ = 0;
  std::uint64_t last_ticks_ = 0;
  std::uint64_t reached_ticks_ = 0;
  std::uint64_t recorded_ = 0;
  std::uint64_t dropped_by_retired_ = 0;
};

}  // namespace layertrace
