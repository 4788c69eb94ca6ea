// One thread's records. The owning thread appends without a lock and without waiting; one reader
// (the drain) follows behind. Nothing is lost unseen: a record that finds no room is counted, and
// the place of the loss is marked.
//
// Nesting survives loss: a begin is taken only where its end is sure to fit too, so whatever was
// opened in a buffer is also closed there.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "record/chunk_pool.h"
#include "record/record.h"

namespace layertrace {

class ThreadBuffer {
 public:
  // `key` is what autograd calls this thread, `tid` what the system does.
  ThreadBuffer(ChunkPool& pool, std::uint64_t key, std::uint64_t tid, std::string name);
  ~ThreadBuffer();
  ThreadBuffer(const ThreadBuffer&) = delete;  // the reader holds on to its address
  ThreadBuffer& operator=(const ThreadBuffer&) = delete;

  // ---- The owning thread ----

  // Appends a begin and sets room aside for its end. False: neither will fit, and both have been
  // counted as dropped; do not call end().
  bool begin(const Record& record) noexcept {
    if (position_ + open_ + 2 + kMarkReserve <= limit_) [[likely]] {
      ++open_;
      append(record);
      return true;
    }
    return begin_slow(record);
  }

  // Appends the end of a begin that was taken. Always fits.
  void end(const Record& record) noexcept {
    --open_;
    append(record);
  }

  // The begin's end will not come here (its window is over): frees the room set aside for it.
  void forget_end() noexcept { --open_; }

  // Appends a record that stands alone. A few fit even when begins do not.
  bool mark(const Record& record) noexcept {
    if (position_ + open_ + 1 <= limit_) [[likely]] {
      append(record);
      return true;
    }
    return mark_slow(record);
  }

  // No more records will come: the thread ends.
  void retire() noexcept { retired_.store(true, std::memory_order_release); }

  // ---- The reader ----

  // How many records were committed so far, since the buffer's birth.
  std::uint64_t committed() const noexcept;

  // The records from the first unread one on, in order, up to `committed()` now. Valid until
  // consume().
  void unread(std::vector<std::span<const Record>>& spans) const;

  // Marks `count` of the unread records as read and gives full chunks back.
  void consume(std::uint64_t count) noexcept;

  std::uint64_t consumed() const noexcept { return consumed_.load(std::memory_order_relaxed); }
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  bool retired() const noexcept { return retired_.load(std::memory_order_acquire); }

  std::uint64_t key() const noexcept { return key_; }
  std::uint64_t tid() const noexcept { return tid_; }
  const std::string& name() const noexcept { return name_; }

 private:
  static constexpr std::uint32_t kMarkReserve = 16;

  void append(const Record& record) noexcept {
    chunk_->records[position_] = record;
    chunk_->committed.store(round_ | ++position_, std::memory_order_release);
  }
  // By value: a record whose address is taken is built in memory first, and reading it back waits
  // for that.
  bool begin_slow(Record record) noexcept;
  bool mark_slow(Record record) noexcept;
  bool has_room(std::uint32_t room) const noexcept {
    return position_ + open_ + room <= Chunk::kCapacity;
  }
  bool next_chunk(std::uint32_t room) noexcept;
  bool begin_chunk_again() noexcept;
  std::uint32_t read_in(std::uint64_t committed) const noexcept;
  void count_dropped(std::uint64_t records) noexcept;
  void mark_gap(std::uint64_t ticks) noexcept;

  Chunk* chunk_ = nullptr;
  std::uint32_t position_ = Chunk::kCapacity;
  std::uint32_t limit_ =
      Chunk::kCapacity;  // 0 while a gap waits for its mark: then all go the slow way
  std::uint32_t open_ = 0;
  std::uint64_t round_ = 0;   // how often the chunk was begun again, in the upper half
  std::uint64_t before_ = 0;  // records before the chunk's
  std::uint64_t dropped_since_mark_ = 0;
  ChunkPool& pool_;

  alignas(64) std::atomic<std::uint64_t> dropped_{0};
  std::atomic<bool> retired_{false};
  std::atomic<Chunk*> first_{nullptr};
  Chunk* reading_ = nullptr;
  std::uint32_t read_position_ = 0;
  std::uint64_t read_round_ = 0;
  std::atomic<std::uint64_t> consumed_{0};
  const std::uint64_t key_;
  const std::uint64_t tid_;
  const std::string name_;
};

}  // namespace layertrace
