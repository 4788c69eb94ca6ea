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
namespace {

// So many wait before they are moved into buffers without being asked for.
constexpr std::size_t kManyRecords = 2048;
constexpr auto kLateBy = std::chrono::milliseconds(50);

}  // namespace

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

void Delivery::forget_thread() noexcept {
  std::construct_at(&mutex_);
  std::construct_at(&delivery_mutex_);
  std::construct_at(&wake_);
  std::construct_at(&flushed_);
  has_thread_ = false;
}

Delivery::Buffer Delivery::request() {
  Buffer buffer;
  if (const auto ask = request_.load()) ask(&buffer.memory, &buffer.size, &buffer.most_records);
  if (buffer.memory == nullptr) buffer.size = 0;
  if (zeroed_ && buffer.memory != nullptr) std::memset(buffer.memory, 0, buffer.size);
  return buffer;
}

void Delivery::add(const Record& record) {
  if (!asked_.load(std::memory_order_relaxed) && has_callbacks() && !asked_.exchange(true)) {
    const Buffer fresh = request();  // outside the lock: it is the client's code
    const std::lock_guard lock(mutex_);
    if (fresh.memory != nullptr) spares_.push_back(fresh);
  }
  bool many = false;
  {
    const std::lock_guard lock(mutex_);
    pending_[record.order].push_back(record);
    many = ++pending_count_ >= looked_at_ + kManyRecords;
  }
  if (many) wake_.notify_one();
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
      return flushes_asked_ != flushes_done_ || pending_count_ >= looked_at_ + kManyRecords;
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
      std::this_thread::sleep_for(kLateBy);
      const std::lock_guard delivering(delivery_mutex_);
      complete(std::exchange(late_, {}));
    }
    lock.lock();
    flushes_done_ = std::max(flushes_done_, flush);
    flushed_.notify_all();
  }
}

// Those that have ended, in their order within a stream. Streams come the highest first, and what
// the host did last: no client may count on an order across them.
std::vector<Record> Delivery::take_ready(bool forced) {
  const std::uint64_t now_ns = Machine::instance().clock().now();
  std::vector<Record> ready;
  const std::lock_guard lock(mutex_);
  for (auto& [order, records] : std::views::reverse(pending_)) {
    while (!records.empty() && (forced || records.front().ready_ns <= now_ns)) {
      if (records.front().ready_ns > now_ns) forget_end(records.front());
      ready.push_back(records.front());
      records.pop_front();
    }
  }
  pending_count_ -= ready.size();
  looked_at_ = pending_count_;
  return ready;
}

void Delivery::deliver(bool everything, bool forced) {
  const std::lock_guard delivering(delivery_mutex_);
  for (const Record& record : take_ready(forced)) put(record);
  if (everything && current_.memory != nullptr) {
    if (config().fault(FaultKind::kLateBuffer) && has_thread_) {
      late_ = take_current();
    } else {
      complete(take_current());
    }
  }
}

void Delivery::put(const Record& record) {
  if (config().fault_at(FaultKind::kDropRecords, ++records_)) {
    dropped_.fetch_add(1);
    return;
  }
  if (current_.memory != nullptr && current_.size - current_.used < record.size)
    complete(take_current());
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
  if (current_.size < record.size) {
    dropped_.fetch_add(1);
    return;
  }
  std::memcpy(current_.memory + current_.used, record.bytes, record.size);
  current_.used += record.size;
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
  if (config().fault_at(FaultKind::kNullBuffer, ++buffers_)) give(nullptr, 0, nullptr, 0, 0);
  give(nullptr, 0, buffer.memory, buffer.size, buffer.used);
}

}  // namespace simgpu::cupti
