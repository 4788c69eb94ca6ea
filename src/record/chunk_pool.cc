#include "record/chunk_pool.h"

#include <algorithm>
#include <bit>
#include <new>

namespace layertrace {

ChunkPool::ChunkPool(std::size_t max_chunks)
    : max_chunks_(std::max<std::size_t>(max_chunks, 2)),
      mask_(std::bit_ceil(max_chunks_) - 1),
      cells_(std::make_unique<Cell[]>(mask_ + 1)) {
  for (std::size_t i = 0; i <= mask_; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
}

ChunkPool::~ChunkPool() { trim(); }

void ChunkPool::trim() noexcept {
  while (Chunk* chunk = pop()) {
    delete chunk;
    allocated_.fetch_sub(1, std::memory_order_relaxed);
  }
}

Chunk* ChunkPool::take() noexcept {
  if (Chunk* chunk = pop()) return chunk;
  return allocate();
}

Chunk* ChunkPool::allocate() noexcept {
  if (allocated_.fetch_add(1, std::memory_order_relaxed) < max_chunks_) {
    // Default-initialised: the pages are touched when they are written, or by stock().
    if (auto* chunk = new (std::nothrow) Chunk) return chunk;
  }
  allocated_.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

Chunk* ChunkPool::pop() noexcept {
  std::size_t position = head_.load(std::memory_order_relaxed);
  for (;;) {
    Cell& cell = cells_[position & mask_];
    const std::size_t turn = cell.turn.load(std::memory_order_acquire);
    if (turn == position + 1) {
      if (head_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
        Chunk* chunk = cell.chunk;
        cell.turn.store(position + mask_ + 1, std::memory_order_release);
        return chunk;
      }
    } else if (turn < position + 1) {
      return nullptr;  // empty
    } else {
      position = head_.load(std::memory_order_relaxed);
    }
  }
}

void ChunkPool::give_back(Chunk* chunk) noexcept {
  chunk->committed.store(0, std::memory_order_relaxed);
  chunk->next.store(nullptr, std::memory_order_relaxed);
  std::size_t position = tail_.load(std::memory_order_relaxed);
  for (;;) {
    Cell& cell = cells_[position & mask_];
    const std::size_t turn = cell.turn.load(std::memory_order_acquire);
    if (turn == position) {
      if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
        cell.chunk = chunk;
        cell.turn.store(position + 1, std::memory_order_release);
        return;
      }
    } else {
      position = tail_.load(std::memory_order_relaxed);
    }
  }
}

void ChunkPool::stock(std::size_t count) noexcept {
  const std::size_t free =
      tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_relaxed);
  for (std::size_t i = free; i < count; ++i) {
    Chunk* chunk = allocate();
    if (chunk == nullptr) return;
    constexpr std::size_t kPageBytes = 4096;
    auto* bytes = reinterpret_cast<volatile char*>(chunk->records);
    constexpr std::size_t kBytes = sizeof(chunk->records);
    for (std::size_t offset = 0; offset < kBytes; offset += kPageBytes) bytes[offset] = 0;
    give_back(chunk);
  }
}

}  // namespace layertrace
