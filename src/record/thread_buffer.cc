#include "record/thread_buffer.h"

#include <algorithm>
#include <utility>

namespace layertrace {
namespace {

constexpr std::uint64_t kOneRound = std::uint64_t{1} << 32;

std::uint32_t count_of(std::uint64_t committed) noexcept {
  return static_cast<std::uint32_t>(committed);
}
std::uint64_t round_of(std::uint64_t committed) noexcept { return committed & ~(kOneRound - 1); }

}  // namespace

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

bool ThreadBuffer::begin_slow(Record record) noexcept {
  // A begin needs its own place, its end's, those of all open ends, the reserve for marks, and one
  // for the gap's mark.
  constexpr std::uint32_t kRoom = 3 + kMarkReserve;
  if (!has_room(kRoom) && !next_chunk(kRoom)) {
    count_dropped(2);
    return false;
  }
  mark_gap(record.ticks);
  ++open_;
  append(record);
  return true;
}

bool ThreadBuffer::mark_slow(Record record) noexcept {
  if (has_room(2) || next_chunk(2)) {
    mark_gap(record.ticks);
  } else if (!has_room(1)) {
    count_dropped(1);
    return false;
  }
  append(record);
  return true;
}

// Goes on to another chunk, in which `room` records fit beside the open ends.
bool ThreadBuffer::next_chunk(std::uint32_t room) noexcept {
  if (open_ + room > Chunk::kCapacity) return false;
  Chunk* fresh = pool_.take();
  if (fresh == nullptr) return begin_chunk_again();
  if (chunk_ == nullptr) {
    first_.store(fresh, std::memory_order_release);
  } else {
    before_ += position_;
    chunk_->next.store(fresh, std::memory_order_release);
  }
  chunk_ = fresh;
  position_ = 0;
  round_ = 0;
  return true;
}

// Where other threads hold all the other chunks: once all is read, the same one does again.
bool ThreadBuffer::begin_chunk_again() noexcept {
  if (chunk_ == nullptr || consumed_.load(std::memory_order_acquire) != before_ + position_)
    return false;
  before_ += std::exchange(position_, 0);
  round_ += kOneRound;
  chunk_->committed.store(round_, std::memory_order_release);
  return true;
}

void ThreadBuffer::count_dropped(std::uint64_t records) noexcept {
  limit_ = 0;
  dropped_since_mark_ += records;
  dropped_.store(dropped_.load(std::memory_order_relaxed) + records, std::memory_order_relaxed);
}

// At the time of the record that follows it, so that a lane's records stay in order of time.
void ThreadBuffer::mark_gap(std::uint64_t ticks) noexcept {
  if (dropped_since_mark_ == 0) return;
  limit_ = Chunk::kCapacity;
  append({.ticks = ticks,
          .value = std::exchange(dropped_since_mark_, 0),
          .sequence = 0,
          .id = 0,
          .kind = RecordKind::kGap,
          .flags = 0,
          .window = 0});
}

std::uint64_t ThreadBuffer::committed() const noexcept {
  const Chunk* chunk = reading_ != nullptr ? reading_ : first_.load(std::memory_order_acquire);
  std::uint64_t total = consumed();
  for (bool first = true; chunk != nullptr; first = false) {
    // Next first: once it is set, the chunk's count is final.
    const Chunk* next = chunk->next.load(std::memory_order_acquire);
    const std::uint64_t committed = chunk->committed.load(std::memory_order_acquire);
    total += count_of(committed) - (first ? read_in(committed) : 0);
    chunk = next;
  }
  return total;
}

// How much of the chunk that is being read has been read. One that was begun again is unread.
std::uint32_t ThreadBuffer::read_in(std::uint64_t committed) const noexcept {
  return round_of(committed) == read_round_ ? read_position_ : 0;
}

void ThreadBuffer::unread(std::vector<std::span<const Record>>& spans) const {
  const Chunk* chunk = reading_ != nullptr ? reading_ : first_.load(std::memory_order_acquire);
  for (bool first = true; chunk != nullptr; first = false) {
    const Chunk* next = chunk->next.load(std::memory_order_acquire);
    const std::uint64_t committed = chunk->committed.load(std::memory_order_acquire);
    const std::uint32_t from = first ? read_in(committed) : 0;
    const std::uint32_t to = count_of(committed);
    if (to > from) spans.emplace_back(chunk->records + from, to - from);
    chunk = next;
  }
}

void ThreadBuffer::consume(std::uint64_t count) noexcept {
  if (reading_ == nullptr) reading_ = first_.load(std::memory_order_acquire);
  const std::uint64_t consumed_now = consumed() + count;
  while (reading_ != nullptr) {
    Chunk* next = reading_->next.load(std::memory_order_acquire);
    const std::uint64_t committed = reading_->committed.load(std::memory_order_acquire);
    read_position_ = read_in(committed);
    read_round_ = round_of(committed);
    const std::uint32_t here = count_of(committed) - read_position_;
    const auto step = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, here));
    read_position_ += step;
    count -= step;
    if (step < here || next == nullptr) break;
    pool_.give_back(std::exchange(reading_, next));
    read_position_ = 0;
    read_round_ = 0;
  }
  consumed_.store(consumed_now, std::memory_order_release);  // last: the owner may begin again now
}

}  // namespace layertrace
