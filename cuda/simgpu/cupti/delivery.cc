#include "cupti/delivery.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ranges>
#include <thread>
#include <utility>

#include "core/machine.h"

namespace simgpu::cupti {

void Delivery::set_callbacks(CUpti_BuffersCallbackRequestFunc request_buffer,
                             CUpti_BuffersCallbackCompleteFunc complete_buffer) {
  const std::lock_guard delivering(delivery_mutex_);
  const std::lock_guard lock(mutex_);
  request_ = request_buffer;
  complete_ = complete_buffer;
  start_thread();
}

void Delivery::start_thread() {
  if (std::exchange(has_thread_, true)) return;
  // The program's signals are for its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Delivery::forget_parent() noexcept {
  std::construct_at(&mutex_);
  std::construct_at(&delivery_mutex_);
  std::construct_at(&new_lock_);
  // Not destroyed: the parent may have been changing them.
  std::construct_at(&new_);
  std::construct_at(&sorting_);
  std::construct_at(&pending_);
  new_count_ = 0;
  std::construct_at(&wake_);
  std::construct_at(&flushed_);
  has_thread_ = false;
}

Delivery::Buffer Delivery::request() {
  Buffer buffer;
  if (const auto ask = request_.load()) ask(&buffer.memory, &buffer.size, &buffer.most_records);
  if (buffer.memory == nullptr) buffer.size = 0;
  constexpr std::size_t kLeastRecord = 64;
  constexpr std::size_t kMostRecords = 16384;
  many_records_.store(std::clamp(buffer.size / kLeastRecord, kFewRecords, kMostRecords),
                      std::memory_order_relaxed);
  if (zeroed_ && buffer.memory != nullptr) std::memset(buffer.memory, 0, buffer.size);
  return buffer;
}

void Delivery::ask() {
  if (!has_callbacks() || asked_.exchange(true)) return;
  const Buffer fresh = request();  // outside the lock: it is the client's code
  const std::lock_guard lock(mutex_);
  if (fresh.memory != nullptr) spares_.push_back(fresh);
  // A smaller buffer than before: there may be many by now.
  if (new_count_.load() >= many_records_.load(std::memory_order_relaxed)) wake_.notify_one();
}

void Delivery::wake() {
  // The thread of ours has either not looked yet, or sleeps: between the two it holds this.
  { const std::lock_guard lock(mutex_); }
  wake_.notify_one();
}

void Delivery::set_period(std::uint32_t milliseconds) {
  const std::lock_guard lock(mutex_);
  period_ms_ = milliseconds;
  start_thread();
  wake_.notify_one();
}

void Delivery::flush(bool forced) {
  std::unique_lock lock(mutex_);
  if (!has_thread_) {
    lock.unlock();
    deliver(/*everything=*/true, forced);
    return;
  }
  const std::uint64_t mine = ++flushes_asked_;
  forced_ = forced_ || forced;
  wake_.notify_one();
  flushed_.wait(lock, [&] { return flushes_done_ >= mine; });
}

void Delivery::run() {
  pthread_setname_np(pthread_self(), "simgpu-cupti");
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto asked = [this] {
      return flushes_asked_ != flushes_done_ ||
             new_count_.load() >= many_records_.load(std::memory_order_relaxed);
    };
    if (period_ms_ != 0) {
      wake_.wait_for(lock, std::chrono::milliseconds(period_ms_), asked);
    } else {
      wake_.wait(lock, [&] { return asked() || period_ms_ != 0; });
    }
    const std::uint64_t flush = flushes_asked_;
    // Without being asked, only full buffers are given back.
    const bool everything = flush != flushes_done_;
    const bool forced = std::exchange(forced_, false);
    lock.unlock();
    deliver(everything, forced);
    if (late_.memory != nullptr) {
      {
        const std::lock_guard again(mutex_);
        flushes_done_ = flush;
      }
      flushed_.notify_all();
      std::this_thread::sleep_for(
          std::chrono::milliseconds(config().fault(FaultKind::kLateBuffer).value_or(0)));
      const std::lock_guard delivering(delivery_mutex_);
      complete(std::exchange(late_, {}));
    }
    lock.lock();
    flushes_done_ = std::max(flushes_done_, flush);
    flushed_.notify_all();
  }
}

void Delivery::sort_new() {
  {
    const std::lock_guard lock(new_lock_);
    std::swap(new_, sorting_);
    new_count_.store(0, std::memory_order_relaxed);
  }
  for (; !sorting_.empty(); sorting_.pop()) {
    const RecordQueue::Entry record = sorting_.front();
    pending_[record.head.order].push(record.head, record.bytes);
  }
}

void Delivery::put_ready(RecordQueue& records, std::uint64_t now_ns, bool forced) {
  for (; !records.empty(); records.pop()) {
    const RecordQueue::Entry record = records.front();
    const bool has_ended = record.head.ready_ns <= now_ns;
    if (!has_ended && !forced) return;
    put(record, has_ended);
  }
}

// Those that have ended, in their order within a stream. Streams come the highest first, and what
// the host did last: no client may count on an order across them.
void Delivery::deliver(bool everything, bool forced) {
  const std::lock_guard delivering(delivery_mutex_);
  const std::uint64_t now_ns = Machine::instance().clock().now();
  sort_new();
  for (auto& [order, records] : std::views::reverse(pending_)) put_ready(records, now_ns, forced);
  if (!everything) return;
  if (current_.memory != nullptr) {
    if (config().fault(FaultKind::kLateBuffer) && has_thread_) {
      Machine::instance().count_fault(FaultKind::kLateBuffer);
      late_ = take_current();
    } else {
      complete(take_current());
    }
  }
  give_back_spares();
}

// A flush leaves no buffer behind: the next one to ask for records may be another client, to whom
// those of this one mean nothing.
void Delivery::give_back_spares() {
  std::vector<Buffer> unused;
  {
    const std::lock_guard lock(mutex_);
    unused.swap(spares_);
    asked_ = false;
  }
  for (const Buffer& buffer : unused) complete(buffer);
}

void Delivery::put(const RecordQueue::Entry& entry, bool has_ended) {
  if (entry.head.is_kernel_note) {
    Record record = kernel_record(entry.kernel_note(), entry.head.ready_ns);
    if (!has_ended) forget_end(record.bytes);
    put(record.bytes, record.head.size);
  } else {
    if (!has_ended) forget_end(entry.bytes);
    put(entry.bytes, entry.head.size);
  }
}

void Delivery::put(const std::byte* record, std::size_t size) {
  if (config().fault_at(FaultKind::kDropRecords, ++records_)) {
    Machine::instance().count_fault(FaultKind::kDropRecords);
    dropped_.fetch_add(1);
    return;
  }
  if (current_.memory != nullptr && current_.size - current_.used < size) complete(take_current());
  if (current_.memory == nullptr) {
    {
      const std::lock_guard lock(mutex_);
      if (!spares_.empty()) {
        current_ = spares_.back();
        spares_.pop_back();
      }
    }
    if (current_.memory == nullptr) current_ = request();
    asked_ = current_.memory != nullptr;  // one that declined is asked again
  }
  if (current_.size < size) {
    dropped_.fetch_add(1);
    return;
  }
  std::memcpy(current_.memory + current_.used, record, size);
  current_.used += size;
  ++current_.records;
  if (current_.records == current_.most_records) complete(take_current());
}

Delivery::Buffer Delivery::take_current() {
  const std::lock_guard lock(mutex_);
  asked_ = !spares_.empty();
  return std::exchange(current_, {});
}

void Delivery::complete(Buffer buffer) {
  const auto give = complete_.load();
  if (give == nullptr) return;
  if (config().fault_at(FaultKind::kNullBuffer, ++buffers_)) {
    Machine::instance().count_fault(FaultKind::kNullBuffer);
    give(nullptr, 0, nullptr, 0, 0);
  }
  give(nullptr, 0, buffer.memory, buffer.size, buffer.used);
}

}  // namespace simgpu::cupti
