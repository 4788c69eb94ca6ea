#include "capture/recording.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

namespace layertrace {

std::shared_ptr<ThreadBuffer> Recording::add_thread() {
  std::array<char, 32> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  auto buffer = std::make_shared<ThreadBuffer>(pool_, thread_key_(),
                                               static_cast<std::uint64_t>(syscall(SYS_gettid)),
                                               std::string(name.data()));
  const std::lock_guard lock(mutex_);
  new_threads_.push_back(buffer);
  return buffer;
}

LiveCalls* Recording::live_calls(std::uint64_t thread_key, bool make) {
  const std::lock_guard lock(mutex_);
  const auto known = live_calls_.find(thread_key);
  if (known != live_calls_.end()) return known->second.get();
  if (!make || live_calls_.size() >= kMostLiveCalls) return nullptr;
  return live_calls_.emplace(thread_key, std::make_unique<LiveCalls>()).first->second.get();
}

std::uint32_t Recording::next_session() noexcept {
  static std::atomic<std::uint32_t> sessions{0};
  return sessions.fetch_add(1, std::memory_order_relaxed) + 1;
}

void Recording::open_window() noexcept {
  static std::atomic<std::uint32_t> windows{0};
  window_.store(windows.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Recording::take_new_threads(std::vector<std::shared_ptr<ThreadBuffer>>& threads) {
  const std::lock_guard lock(mutex_);
  for (auto& buffer : new_threads_) threads.push_back(std::move(buffer));
  new_threads_.clear();
}

void Recording::tell_optimizer(const void* optimizer, std::uint64_t state_bytes) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    optimizers_.insert_or_assign(optimizer, state_bytes);
  } catch (...) {  // no memory for it: it is not known
  }
}

std::optional<std::uint64_t> Recording::optimizer_state_bytes() const {
  const std::lock_guard lock(mutex_);
  if (optimizers_.empty()) return std::nullopt;
  std::uint64_t bytes = 0;
  for (const auto& [optimizer, state_bytes] : optimizers_) bytes += state_bytes;
  return bytes;
}

}  // namespace layertrace
