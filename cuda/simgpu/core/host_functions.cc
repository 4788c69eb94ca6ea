#include "core/host_functions.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace simgpu {

void HostFunctions::add(std::uint64_t due_ns, std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  queue_.push_back({due_ns, std::move(function)});
  if (!std::exchange(started_, true)) std::thread([this] { run(); }).detach();
  wake_.notify_one();
}

bool HostFunctions::has_due(std::uint64_t until_ns) const {
  return std::any_of(queue_.begin(), queue_.end(),
                     [&](const Entry& entry) { return entry.due_ns <= until_ns; });
}

bool HostFunctions::settled(std::uint64_t until_ns) {
  const std::lock_guard lock(mutex_);
  return !has_due(until_ns);
}

void HostFunctions::settle(std::uint64_t until_ns) {
  std::unique_lock lock(mutex_);
  called_.wait(lock, [&] { return !has_due(until_ns); });
}

void HostFunctions::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return !queue_.empty(); });
    Entry& next = queue_.front();  // stays where it is: others are added behind it
    lock.unlock();
    if (!clock_.is_virtual()) clock_.wait_until(next.due_ns);
    next.function();
    lock.lock();
    queue_.pop_front();
    called_.notify_all();
  }
}

}  // namespace simgpu
