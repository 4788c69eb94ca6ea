#include "activity/cupti_buffers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace layertrace::cuda {

CuptiBuffers& CuptiBuffers::instance() {
  static auto* buffers = new CuptiBuffers;  // never destroyed: CUPTI may hand one back at the end
  return *buffers;
}

std::uint8_t* CuptiBuffers::take() noexcept {
  constexpr std::size_t kAlignment = 8;
  const std::lock_guard lock(mutex_);
  std::uint8_t* buffer = nullptr;
  if (!free_.empty()) {
    buffer = free_.back();
    free_.pop_back();
  } else if (made_ < kMost) {
    buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBytes));
    if (buffer != nullptr) ++made_;
  }
  if (buffer == nullptr) {
    ++refused_;
    return nullptr;
  }
  try {
    out_.push_back(buffer);
  } catch (...) {  // no memory for the entry
    ++refused_;
    forget(buffer);
    return nullptr;
  }
  return buffer;
}

bool CuptiBuffers::take_back(const std::uint8_t* data) noexcept {
  const auto found = std::ranges::find(out_, data);
  if (found == out_.end()) return false;
  out_.erase(found);
  return true;
}

void CuptiBuffers::give_back(std::uint8_t* data, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (data == nullptr) {
    ++lost_;
    return;
  }
  const bool ours = take_back(data);
  try {
    if (!ours) {
      if (wanted_ && bytes != 0) take_copy(data, bytes);
    } else if (!wanted_) {
      forget(data);
    } else if (bytes != 0) {
      filled_.push_back({data, bytes});
    } else {
      free_.push_back(data);
    }
  } catch (...) {  // no memory for the entry
    ++lost_;
    if (ours) forget(data);
  }
  arrived_.notify_all();
}

void CuptiBuffers::take_copy(const std::uint8_t* data, std::size_t bytes) {
  filled_.reserve(filled_.size() + 1);
  auto* copy = static_cast<std::uint8_t*>(std::malloc(bytes));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, data, bytes);
  filled_.push_back({copy, bytes, /*is_copy=*/true});
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
  for (const Filled& buffer : buffers) {
    if (buffer.is_copy) {
      std::free(buffer.data);
    } else {
      free_.push_back(buffer.data);
    }
  }
}

void CuptiBuffers::want(bool wanted) noexcept {
  const std::lock_guard lock(mutex_);
  wanted_ = wanted;
  if (wanted) return;
  for (const Filled& buffer : filled_) {
    if (buffer.is_copy) {
      std::free(buffer.data);
    } else {
      forget(buffer.data);
    }
  }
  for (std::uint8_t* buffer : free_) forget(buffer);
  filled_.clear();
  free_.clear();
}

std::size_t CuptiBuffers::wait_for_all(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, longest, [this] { return out_.empty(); });
  return out_.size();
}

}  // namespace layertrace::cuda
