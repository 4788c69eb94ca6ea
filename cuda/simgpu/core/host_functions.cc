#include "core/host_functions.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

namespace simgpu {
namespace {

thread_local bool is_calling_thread = false;

}  // namespace

bool HostFunctions::is_calling() noexcept { return is_calling_thread; }

void HostFunctions::add(std::uint64_t stream, std::uint64_t due_ns,
                        std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  queue_.push_back({stream, due_ns, std::move(function)});
  pending_.fetch_add(1, std::memory_order_relaxed);
  if (!std::exchange(started_, true)) {
    // The program's signals are for its own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  wake_.notify_one();
}

bool HostFunctions::has(const std::vector<Due>& dues) const {
  const auto is_due = [&](const Entry& entry) {
    return std::any_of(dues.begin(), dues.end(), [&](const Due& due) {
      const bool of_it = due.stream == kEveryStream || due.stream == entry.stream;
      return of_it && entry.due_ns <= due.by_ns;
    });
  };
  return (now_ && is_due(*now_)) || std::any_of(queue_.begin(), queue_.end(), is_due);
}

bool HostFunctions::settled(const std::vector<Due>& dues) {
  const std::lock_guard lock(mutex_);
  return !has(dues);
}

void HostFunctions::settle(const std::vector<Due>& dues) {
  std::unique_lock lock(mutex_);
  called_.wait(lock, [&] { return !has(dues); });
}

// The one that is due first; those of one stream are due in their order.
void HostFunctions::run() {
  is_calling_thread = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (queue_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const auto first =
        std::min_element(queue_.begin(), queue_.end(),
                         [](const Entry& a, const Entry& b) { return a.due_ns < b.due_ns; });
    const std::uint64_t now_ns = clock_.now();
    if (!clock_.is_virtual() && first->due_ns > now_ns) {
      wake_.wait_for(lock, std::chrono::nanoseconds(first->due_ns - now_ns));
      continue;
    }
    now_ = std::move(*first);
    queue_.erase(first);
    lock.unlock();
    now_->function();
    lock.lock();
    now_.reset();
    pending_.fetch_sub(1, std::memory_order_release);
    called_.notify_all();
  }
}

}  // namespace simgpu
