#include "record/chunk_pool.h"

#include <algorithm>
#include <new>

namespace layertrace {

ChunkPool::ChunkPool(std::size_t max_chunks)
    : max_chunks_(std::max<std::size_t>(max_chunks, 2)), free_(max_chunks_) {}

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
  Chunk* chunk = nullptr;
  return free_.pop(chunk) ? chunk : nullptr;
}

void ChunkPool::give_back(Chunk* chunk) noexcept {
  chunk->committed.store(0, std::memory_order_relaxed);
  chunk->next.store(nullptr, std::memory_order_relaxed);
  while (!free_.push(chunk)) {  // there is room for all: someone is just taking one
  }
}

void ChunkPool::stock(std::size_t count) noexcept {
  for (std::size_t i = free_.size(); i < count; ++i) {
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
