// Records one behind the other, each as long as it is. A program's threads wait for a record to be
// put here, so it is copied once, and nothing is allocated once the queue has grown to its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cupti/records.h"

namespace simgpu::cupti {

class RecordQueue {
 public:
  // One that is in the queue, until the next push.
  struct Entry {
    RecordHead head;
    std::byte* bytes;
  };

  bool empty() const noexcept { return first_ == words_.size(); }
  std::size_t count() const noexcept { return count_; }

  void push(const Record& record) { push(record.head, record.bytes); }
  void push(const RecordHead& head, const std::byte* bytes) {
    if (first_ != 0 && first_ >= words_.size() / 2) drop_taken();
    const std::size_t at = words_.size();
    words_.resize(at + kHeadWords + words_in(head.size));
    Word* const to = words_.data() + at;
    to[0] = head.ready_ns;
    to[1] = head.order;
    to[2] = head.size;
    std::memcpy(to + kHeadWords, bytes, head.size);
    ++count_;
  }

  Entry front() noexcept {
    const Word* head = words_.data() + first_;
    return {{head[0], head[1], head[2]},
            reinterpret_cast<std::byte*>(words_.data() + first_ + kHeadWords)};
  }
  void pop() noexcept {
    first_ += kHeadWords + words_in(front().head.size);
    --count_;
    if (!empty()) return;
    words_.clear();
    first_ = 0;
  }

 private:
  using Word = std::uint64_t;
  static constexpr std::size_t kHeadWords = 3;
  static std::size_t words_in(std::size_t bytes) noexcept {
    return (bytes + sizeof(Word) - 1) / sizeof(Word);
  }
  void drop_taken() {
    words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

  std::vector<Word> words_;
  std::size_t first_ = 0;  // those before it were taken
  std::size_t count_ = 0;
};

}  // namespace simgpu::cupti
