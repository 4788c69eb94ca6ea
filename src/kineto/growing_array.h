// A list of plain records that may become very long. Growing a std::vector holds the old copy and
// the new one for a moment; here the system moves pages instead, so that the most memory that is
// ever taken is what the records need.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace layertrace::kineto {

template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(GrowingArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        room_(std::exchange(other.room_, 0)) {}
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
    return *this;
  }
  GrowingArray(const GrowingArray&) = delete;  // as long as they are, none should be copied
  GrowingArray& operator=(const GrowingArray&) = delete;
  ~GrowingArray() { std::free(data_); }  // NOLINT(*-no-malloc)

  void push_back(const T& item) {
    if (size_ == room_) [[unlikely]]
      grow();
    data_[size_++] = item;
  }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  void shorten(std::size_t size) noexcept { size_ = size; }

 private:
  void grow() {
    const std::size_t room = room_ == 0 ? 1024 : 2 * room_;
    void* const more = std::realloc(data_, room * sizeof(T));  // NOLINT(*-no-malloc)
    if (more == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(more);
    room_ = room;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

}  // namespace layertrace::kineto
