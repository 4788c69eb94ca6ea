// Records one behind the other, each as long as it is. A program's threads wait for a record to be
// put here, so it is copied once, and nothing is allocated once the queue has grown to its size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "cupti/records.h"

namespace simgpu::cupti {

class RecordQueue {
 public:
  // One that is in the queue, until the next push.
  struct Entry {
    RecordHead head;
    std::byte* bytes;

    KernelNote kernel_note() const noexcept {
      KernelNote note;
      std::memcpy(&note, bytes, sizeof(note));
      return note;
    }
  };

  bool empty() const noexcept { return first_ == end_; }
  std::size_t count() const noexcept { return count_; }

  void push(const Record& record) { push(record.head, record.bytes); }
  void push(const KernelNote& note, std::uint64_t ready_ns, std::uint64_t order) {
    push({ready_ns, order, sizeof(note), /*is_kernel_note=*/true}, &note);
  }
  // Of what the host did: that has ended, and is in the host's own order.
  template <typename T>
  void push_host(const T& record) {
    static_assert(std::is_trivially_copyable_v<T>);
    push({0, 0, sizeof(T)}, &record);
  }
  void push(const RecordHead& head, const void* bytes) {
    Word* to = add_words(words_before(head) + words_in(head.size));
    *to++ = head.size | (is_short(head) ? kShort : 0) | (head.is_kernel_note ? kNote : 0);
    if (!is_short(head)) {
      *to++ = head.ready_ns;
      *to++ = head.order;
    }
    std::memcpy(to, bytes, head.size);
    ++count_;
  }

  Entry front() noexcept {
    Word* at = words_.get() + first_;
    RecordHead head;
    head.size = static_cast<std::uint32_t>(*at);
    head.is_kernel_note = (*at & kNote) != 0;
    const bool shortened = (*at++ & kShort) != 0;
    if (!shortened) {
      head.ready_ns = *at++;
      head.order = *at++;
    }
    return {head, reinterpret_cast<std::byte*>(at)};
  }
  void pop() noexcept {
    const RecordHead head = front().head;
    first_ += words_before(head) + words_in(head.size);
    --count_;
    if (empty()) first_ = end_ = 0;
  }

 private:
  using Word = std::uint64_t;
  // Beside the size, in the first word. A short one is ready, and in the host's order: without the
  // other two words.
  static constexpr Word kShort = Word{1} << 32;
  static constexpr Word kNote = Word{1} << 33;

  static bool is_short(const RecordHead& head) noexcept {
    return head.ready_ns == 0 && head.order == 0;
  }
  static std::size_t words_before(const RecordHead& head) noexcept {
    return is_short(head) ? 1 : 3;
  }
  static std::size_t words_in(std::size_t bytes) noexcept {
    return (bytes + sizeof(Word) - 1) / sizeof(Word);
  }

  Word* add_words(std::size_t count) {
    if (end_ + count > capacity_) make_room(count);
    Word* const added = words_.get() + end_;
    end_ += count;
    return added;
  }
  // At the beginning, if half of it was taken; else in larger memory.
  void make_room(std::size_t count) {
    constexpr std::size_t kFirst = 64;  // there is one for each stream
    const std::size_t held = end_ - first_;
    if (held + count <= capacity_ / 2) {
      std::memmove(words_.get(), words_.get() + first_, held * sizeof(Word));
    } else {
      const std::size_t capacity = std::max({kFirst, 2 * capacity_, held + count});
      auto larger = std::make_unique_for_overwrite<Word[]>(capacity);
      if (held != 0) std::memcpy(larger.get(), words_.get() + first_, held * sizeof(Word));
      words_ = std::move(larger);
      capacity_ = capacity;
    }
    first_ = 0;
    end_ = held;
  }

  std::unique_ptr<Word[]> words_;
  std::size_t capacity_ = 0;
  std::size_t first_ = 0;  // those before it were taken
  std::size_t end_ = 0;
  std::size_t count_ = 0;
};

}  // namespace simgpu::cupti
