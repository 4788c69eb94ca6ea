#include "record/thread_buffer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace layertrace {

ThreadBuffer::ThreadBuffer(ChunkPool& pool, std::uint64_t key, std::uint64_t tid, std::string name)
    : pool_(pool), key_(key), tid_(tid), name_(std::move(name)) {}

ThreadBuffer::~ThreadBuffer() {
  Chunk* chunk = reading_ != nullptr ? reading_ : first_.load(std::memory_order_acquire);
  while (chunk != nullptr) {
    Chunk* next = chunk->next.load(std::memory_order_acquire);
    pool_.give_back(chunk);
    chunk = next;
  }
}

bool ThreadBuffer::begin_slow(const Record& record) noexcept {
  // A begin needs its own place, its end's, those of all open ends, the reserve for marks, and one for the gap's mark.
  if (!next_chunk(open_ + 3 + kMarkReserve)) {
    count_dropped(2);
    return false;
  }
  ++open_;
  append(record);
  return true;
}

bool ThreadBuffer::mark_slow(const Record& record) noexcept {
  if (!next_chunk(open_ + 2)) {
    count_dropped(1);
    return false;
  }
  append(record);
  return true;
}

bool ThreadBuffer::next_chunk(std::uint32_t room) noexcept {
  if (room > Chunk::kCapacity) return false;
  Chunk* fresh = pool_.take();
  if (fresh == nullptr) return false;
  if (chunk_ == nullptr) {
    first_.store(fresh, std::memory_order_release);
  } else {
    chunk_->next.store(fresh, std::memory_order_release);
  }
  chunk_ = fresh;
  position_ = 0;
  if (dropped_since_mark_ != 0) {
    append({.ticks = clock_ticks(),
            .value = std::exchange(dropped_since_mark_, 0),
            .sequence = 0,
            .id = 0,
            .kind = RecordKind::kGap,
            .flags = 0,
            .window = 0});
  }
  return true;
}

void ThreadBuffer::count_dropped(std::uint64_t records) noexcept {
  dropped_since_mark_ += records;
  dropped_.store(dropped_.load(std::memory_order_relaxed) + records, std::memory_order_relaxed);
}

std::uint64_t ThreadBuffer::committed() const noexcept {
  const Chunk* chunk = reading_ != nullptr ? reading_ : first_.load(std::memory_order_acquire);
  std::uint64_t total = consumed_ - read_position_;
  while (chunk != nullptr) {
    // Next first: once it is set, the chunk's count is final.
    const Chunk* next = chunk->next.load(std::memory_order_acquire);
    total += chunk->committed.load(std::memory_order_acquire);
    chunk = next;
  }
  return total;
}

void ThreadBuffer::unread(std::vector<std::span<const Record>>& spans) const {
  const Chunk* chunk = reading_ != nullptr ? reading_ : first_.load(std::memory_order_acquire);
  std::uint32_t from = read_position_;
  while (chunk != nullptr) {
    const Chunk* next = chunk->next.load(std::memory_order_acquire);
    const std::uint32_t to = chunk->committed.load(std::memory_order_acquire);
    if (to > from) spans.emplace_back(chunk->records + from, to - from);
    from = 0;
    chunk = next;
  }
}

void ThreadBuffer::consume(std::uint64_t count) noexcept {
  if (reading_ == nullptr) reading_ = first_.load(std::memory_order_acquire);
  consumed_ += count;
  while (reading_ != nullptr) {
    Chunk* next = reading_->next.load(std::memory_order_acquire);
    const std::uint32_t here = reading_->committed.load(std::memory_order_acquire) - read_position_;
    const auto step = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, here));
    read_position_ += step;
    count -= step;
    if (step < here || next == nullptr) return;
    pool_.give_back(std::exchange(reading_, next));
    read_position_ = 0;
  }
}

}  // namespace layertrace
