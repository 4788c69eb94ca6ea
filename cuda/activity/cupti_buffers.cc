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

namespace {

std::uint8_t* allocate(std::size_t bytes) noexcept {
  constexpr std::size_t kAlignment = 8;
  return static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, bytes));
}

// Every record begins with its kind, which is not 0. CUPTI writes it whenever it likes.
using FirstWord = std::atomic_ref<std::uint32_t>;
FirstWord first_word(std::uint8_t* data) noexcept {
  return FirstWord(*reinterpret_cast<std::uint32_t*>(data));
}

}  // namespace

CuptiBuffers::Lent CuptiBuffers::take() noexcept {
  constexpr std::size_t kSpareBytes = std::size_t{1} << 16;
  const std::lock_guard lock(mutex_);
  Out out;
  if (!free_.empty()) {
    out.data = free_.back();
    free_.pop_back();
  } else if (made_ < kMost) {
    out.data = allocate(kBytes);
    if (out.data != nullptr) ++made_;
  }
  if (out.data == nullptr) {
    ++refused_;
    if (!always_) return {};
    out = {.data = allocate(kSpareBytes), .is_spare = true};
    if (out.data == nullptr) return {};
  }
  first_word(out.data).store(0, std::memory_order_relaxed);
  try {
    out_.push_back(out);
  } catch (...) {  // no memory for the entry
    if (out.is_spare) {
      std::free(out.data);
    } else {
      ++refused_;
      forget(out.data);
    }
    return {};
  }
  return {out.data, out.is_spare ? kSpareBytes : kBytes};
}

std::optional<CuptiBuffers::Out> CuptiBuffers::take_back(const std::uint8_t* data) noexcept {
  const auto found = std::ranges::find(out_, data, &Out::data);
  if (found == out_.end()) return std::nullopt;
  const Out out = *found;
  out_.erase(found);
  return out;
}

void CuptiBuffers::give_back(std::uint8_t* data, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (data == nullptr) {
    ++lost_;
    return;
  }
  const std::optional<Out> ours = take_back(data);
  try {
    if (!ours) {
      if (wanted_ && bytes != 0) take_copy(data, bytes);
    } else if (ours->is_spare) {
      std::free(data);
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
  if (copies_ == kMost) throw std::bad_alloc();
  filled_.reserve(filled_.size() + 1);
  auto* copy = static_cast<std::uint8_t*>(std::malloc(bytes));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, data, bytes);
  filled_.push_back({copy, bytes, /*is_copy=*/true});
  ++copies_;
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
      --copies_;
    } else {
      free_.push_back(buffer.data);
    }
  }
}

void CuptiBuffers::want(bool wanted, bool always) noexcept {
  const std::lock_guard lock(mutex_);
  wanted_ = wanted;
  always_ = always;
  if (wanted) return;
  for (const Filled& buffer : filled_) {
    if (buffer.is_copy) {
      std::free(buffer.data);
      --copies_;
    } else {
      forget(buffer.data);
    }
  }
  for (std::uint8_t* buffer : free_) forget(buffer);
  filled_.clear();
  free_.clear();
}

bool CuptiBuffers::is_awaited(const Out& out) noexcept {
  return !out.is_spare && !out.is_missed &&
         first_word(out.data).load(std::memory_order_relaxed) != 0;
}

std::size_t CuptiBuffers::wait_for_all(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, longest, [this] { return std::ranges::none_of(out_, is_awaited); });
  std::size_t missed = 0;
  for (Out& out : out_) {
    if (!is_awaited(out)) continue;
    out.is_missed = true;
    ++missed;
  }
  return missed;
}

}  // namespace layertrace::cuda
