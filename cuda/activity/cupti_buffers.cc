#include "activity/cupti_buffers.h"

#include <cstdlib>
#include <utility>

namespace layertrace::cuda {

CuptiBuffers& CuptiBuffers::instance() {
  static auto* buffers = new CuptiBuffers;  // never destroyed: CUPTI may hand one back at the end
  return *buffers;
}

std::uint8_t* CuptiBuffers::take() noexcept {
  constexpr std::size_t kAlignment = 8;
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    std::uint8_t* buffer = free_.back();
    free_.pop_back();
    ++out_;
    return buffer;
  }
  if (made_ < kMost) {
    if (void* memory = std::aligned_alloc(kAlignment, kBytes)) {
      ++made_;
      ++out_;
      return static_cast<std::uint8_t*>(memory);
    }
  }
  ++refused_;
  return nullptr;
}

void CuptiBuffers::give_back(std::uint8_t* data, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (data == nullptr) {
    ++lost_;
    return;
  }
  if (out_ != 0) --out_;
  try {
    if (!wanted_) {
      forget(data);
    } else if (bytes != 0) {
      filled_.push_back({data, bytes});
    } else {
      free_.push_back(data);
    }
  } catch (...) {  // no memory for the entry
    ++lost_;
    forget(data);
  }
  arrived_.notify_all();
}

void CuptiBuffers::forget(std::uint8_t* data) noexcept {
  std::free(data);
  --made_;
}

std::vector<CuptiBuffers::Filled> CuptiBuffers::take_filled() {
  const std::lock_guard lock(mutex_);
  return std::exchange(filled_, {});
}

void CuptiBuffers::reuse(const std::vector<Filled>& buffers) {
  const std::lock_guard lock(mutex_);
  for (const Filled& buffer : buffers) free_.push_back(buffer.data);
}

void CuptiBuffers::want(bool wanted) noexcept {
  const std::lock_guard lock(mutex_);
  wanted_ = wanted;
  if (wanted) return;
  for (const Filled& buffer : filled_) forget(buffer.data);
  for (std::uint8_t* buffer : free_) forget(buffer);
  filled_.clear();
  free_.clear();
}

std::size_t CuptiBuffers::wait_for_all(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, longest, [this] { return out_ == 0; });
  return out_;
}

}  // namespace layertrace::cuda
