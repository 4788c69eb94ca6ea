// What all threads of one session share: memory for records, the definitions, the list of threads.
// Threads hold on to it until they meet the next session or end, so a hook that is late never
// writes into memory that was given back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/device.h"
#include "capture/layer_marks.h"
#include "capture/live_calls.h"
#include "record/chunk_pool.h"
#include "record/definitions.h"
#include "record/thread_buffer.h"

namespace layertrace {

class Recording {
 public:
  // `thread_key` gives the id by which autograd knows the calling thread.
  Recording(std::size_t max_chunks, std::uint64_t (*thread_key)())
      : pool_(max_chunks), thread_key_(thread_key), session_(next_session()) {}
  Recording(const Recording&) = delete;  // threads hold its address
  Recording& operator=(const Recording&) = delete;

  // What a GPU does, if that is recorded, too. Set before the first thread comes.
  void use(std::shared_ptr<DeviceCapture> device) { device_ = std::move(device); }
  DeviceCapture* device() const noexcept { return device_.get(); }

  // Likewise whoever wants to know of layers while they run.
  void use(std::shared_ptr<LayerMarks> marks) { marks_ = std::move(marks); }
  LayerMarks* marks() const noexcept { return marks_.get(); }
  // The calls of the thread that autograd knows by this key, for marks; made with `make`, if there
  // are not too many threads with calls. Else nullptr. They live as long as this does.
  LiveCalls* live_calls(std::uint64_t thread_key, bool make);

  // Numbers the sessions of the process.
  std::uint32_t session() const noexcept { return session_; }

  ChunkPool& pool() noexcept { return pool_; }
  Definitions& definitions() noexcept { return definitions_; }

  // Numbers the stretches in which something is recorded, over all sessions of the process. A scope
  // that was opened in one window is not closed in another.
  std::uint32_t window() const noexcept { return window_.load(std::memory_order_relaxed); }
  void open_window() noexcept;

  // Its session is over. Threads may still leave what they have entered.
  void end() noexcept { over_.store(true, std::memory_order_relaxed); }
  bool is_over() const noexcept { return over_.load(std::memory_order_relaxed); }

  std::shared_ptr<ThreadBuffer> add_thread();
  // Moves the threads that came since the last call into `threads`.
  void take_new_threads(std::vector<std::shared_ptr<ThreadBuffer>>& threads);

  // What an optimizer's state takes; and what all take, nothing where none was told of.
  void tell_optimizer(const void* optimizer, std::uint64_t state_bytes) noexcept;
  std::optional<std::uint64_t> optimizer_state_bytes() const;

  // Hooks whose record could not even reach a buffer (no memory for the thread's own state). Two
  // for a begin.
  void count_lost(std::uint64_t records) noexcept {
    lost_.fetch_add(records, std::memory_order_relaxed);
  }
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kMostLiveCalls = 64;
  static std::uint32_t next_session() noexcept;

  std::shared_ptr<DeviceCapture> device_;
  std::shared_ptr<LayerMarks> marks_;
  std::unordered_map<std::uint64_t, std::unique_ptr<LiveCalls>> live_calls_;
  ChunkPool pool_;
  Definitions definitions_;
  std::uint64_t (*const thread_key_)();
  const std::uint32_t session_;
  std::atomic<std::uint32_t> window_{0};
  std::atomic<bool> over_{false};
  std::atomic<std::uint64_t> lost_{0};
  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::uint64_t> optimizers_;
  std::vector<std::shared_ptr<ThreadBuffer>> new_threads_;
};

}  // namespace layertrace
