// Records on their way into the client's buffers. They wait until what they tell of has ended; then
// a thread of ours fills them in, those of different streams in no order that a client may rely on,
// and gives buffers back when they are full or a flush asks for them.
#pragma once

#include <cupti.h>

#include <atomic>
#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/short_lock.h"
#include "cupti/record_queue.h"

namespace simgpu::cupti {

class Delivery {
 public:
  Delivery() = default;
  Delivery(const Delivery&) = delete;  // its thread refers to it
  Delivery& operator=(const Delivery&) = delete;

  void set_callbacks(CUpti_BuffersCallbackRequestFunc request_buffer,
                     CUpti_BuffersCallbackCompleteFunc complete_buffer);
  bool has_callbacks() const noexcept { return request_.load() != nullptr; }

  // Takes a record, or what `push` pushes on the queue, which has to be quick. Where there is no
  // buffer, it asks the client for one, on this thread.
  void add(const Record& record) {
    add([&](RecordQueue& queue) { queue.push(record); });
  }
  template <std::invocable<RecordQueue&> Push>
  void add(const Push& push) {
    if (!asked_.load(std::memory_order_relaxed)) ask();
    std::size_t before = 0;
    std::size_t count = 0;
    {
      const std::lock_guard lock(new_lock_);
      before = new_.count();
      push(new_);
      count = new_.count();
      new_count_.store(count, std::memory_order_relaxed);
    }
    const std::size_t many = many_records_.load(std::memory_order_relaxed);
    if (before < many && count >= many) wake();
  }

  // Gives back what there is, and returns when the client has it. Forced: also what has not ended,
  // without its end; it is not told again.
  void flush(bool forced);

  // From now on, also without being asked; 0 for not.
  void set_period(std::uint32_t milliseconds);

  // How many records found no room since the last time somebody asked.
  std::size_t take_dropped() noexcept { return dropped_.exchange(0); }
  // Buffers that the client hands out shall be set to zeros first.
  void set_zeroed(bool zeroed) noexcept { zeroed_.store(zeroed); }

  // In a forked child there is no thread of ours, and what it had not delivered is the parent's.
  void forget_parent() noexcept;

 private:
  struct Buffer {
    std::uint8_t* memory = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;
    std::size_t most_records = 0;  // 0: as many as fit
    std::size_t records = 0;
  };

  void ask();
  void wake();
  void start_thread();  // mutex_ is held
  [[noreturn]] void run();
  // On the thread of ours, or where there is none on the one that flushes.
  void deliver(bool everything, bool forced);
  void sort_new();
  void put_ready(RecordQueue& records, std::uint64_t now_ns, bool forced);
  void put(const RecordQueue::Entry& entry, bool has_ended);
  void put(const std::byte* record, std::size_t size);
  Buffer take_current();
  void complete(Buffer buffer);
  void give_back_spares();
  Buffer request();

  std::atomic<CUpti_BuffersCallbackRequestFunc> request_{nullptr};
  std::atomic<CUpti_BuffersCallbackCompleteFunc> complete_{nullptr};
  std::atomic<std::size_t> dropped_{0};
  std::atomic<bool> zeroed_{false};
  // So many wait before they are moved into buffers without being asked for: about as many as make
  // one of the client's full. Whenever the thread of ours wakes, the program's are slower.
  static constexpr std::size_t kFewRecords = 2048;
  std::atomic<std::size_t> many_records_{kFewRecords};
  std::atomic<bool> asked_{false};  // the client for the buffer that is filled, or will be next

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable flushed_;
  ShortLock new_lock_;
  RecordQueue new_;  // since they were last looked through
  std::atomic<std::size_t> new_count_{0};
  // Asked for on the client's threads, of which two may do so at once: none may be forgotten.
  std::vector<Buffer> spares_;
  std::uint32_t period_ms_ = 0;
  bool has_thread_ = false;
  bool forced_ = false;
  std::uint64_t flushes_asked_ = 0;
  std::uint64_t flushes_done_ = 0;

  std::mutex delivery_mutex_;                     // one deliverer at a time
  RecordQueue sorting_;                           // those that were new
  std::map<std::uint64_t, RecordQueue> pending_;  // by their order
  Buffer current_;
  Buffer late_;  // a fault: held back until after the flush
  std::uint64_t records_ = 0;
  std::uint64_t buffers_ = 0;
};

}  // namespace simgpu::cupti
