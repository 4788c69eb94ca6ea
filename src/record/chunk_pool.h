// Memory for records, in chunks. A thread fills one chunk after another; the drain reads them in
// order and gives them back. The pool bounds how many exist, so that recording cannot grow past its
// share of the memory cap, and hands them out without a lock, so that a hook never waits for the
// drain.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bounded_queue.h"
#include "record/record.h"

namespace layertrace {

struct Chunk {
  static constexpr std::uint32_t kCapacity = 1023;

  // How many records the reader may read (the lower half), and how often the owner has begun the
  // chunk again (the upper). Written by the owning thread only.
  std::atomic<std::uint64_t> committed{0};
  std::atomic<Chunk*> next{nullptr};  // set once, when the owner went on to another chunk
  Record records[kCapacity];
};

class ChunkPool {
 public:
  // At least two chunks, so that one thread can always write while another chunk is read.
  explicit ChunkPool(std::size_t max_chunks);
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;  // chunks point back into threads' chains
  ChunkPool& operator=(const ChunkPool&) = delete;

  // A clean chunk, or nullptr when `max_chunks` are in use. Lock-free; allocates when none is free.
  Chunk* take() noexcept;

  // Gives a chunk back that nobody writes to any more.
  void give_back(Chunk* chunk) noexcept;

  // Makes up to `count` free chunks ready, their pages touched, so that hooks meet warm memory. For
  // the drain.
  void stock(std::size_t count) noexcept;

  // Frees the chunks that are not in use. When recording is over.
  void trim() noexcept;

  std::size_t allocated() const noexcept { return allocated_.load(std::memory_order_relaxed); }

 private:
  Chunk* allocate() noexcept;
  Chunk* pop() noexcept;

  const std::size_t max_chunks_;
  BoundedQueue<Chunk*> free_;
  std::atomic<std::size_t> allocated_{0};
};

}  // namespace layertrace
