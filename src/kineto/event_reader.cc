#include "kineto/event_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace layertrace::kineto {
namespace {

// One event is never so large; what is is none.
constexpr std::size_t kMostWindowBytes = std::size_t{64} << 20;
// So much text is read again to find an event behind what is broken; then every byte once.
constexpr std::uint64_t kMostAttemptedBytes = std::uint64_t{1} << 30;

Error not_a_trace(const std::string& path, std::string cause) {
  return {"cannot import " + path, std::move(cause),
          "Name a trace that torch.profiler exported: export_chrome_trace(), or a .pt.trace.json"};
}

}  // namespace

EventReader::EventReader(ByteSource& source, EventHandler& handler, Progress progress,
                         std::size_t window_bytes)
    : source_(source),
      handler_(handler),
      progress_(std::move(progress)),
      window_(window_bytes + 1),
      at_(window_.data()),
      end_(window_.data()) {}

// Moves what is left to the front and reads on. False at the end, and where what is left takes more
// room than there may be.
Result<bool> EventReader::refill() {
  if (ended_) return false;
  const std::size_t kept = left();
  if (kept != 0) std::memmove(window_.data(), at_, kept);
  if (kept + 1 >= window_.size() / 2 && window_.size() < kMostWindowBytes)
    window_.resize(2 * window_.size());
  const std::size_t room = window_.size() - 1 - kept;
  at_ = window_.data();
  end_ = at_ + kept;
  if (room == 0) return false;
  const auto count = source_.read(std::span(window_).subspan(kept, room));
  if (!count) return count.error();
  end_ += *count;
  window_[kept + *count] = '\0';
  outcome_.json_bytes += *count;
  ended_ = *count < room;
  if (progress_) progress_(source_.bytes_taken(), source_.file_bytes());
  return *count != 0;
}

// The next character that is no white space; 0 at the end.
Result<char> EventReader::next() {
  for (;;) {
    while (at_ != end_ && static_cast<unsigned char>(*at_) <= ' ') ++at_;
    if (at_ != end_) return *at_;
    const auto more = refill();
    if (!more) return more.error();
    if (!*more) return '\0';
  }
}

void EventReader::cut_here() {
  if (!outcome_.cut) outcome_.cut_bytes = left();
  outcome_.cut = true;
  at_ = end_;
}

Result<ReadOutcome> EventReader::read(const std::string& path) {
  auto first = next();
  if (!first) return first.error();
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (std::string_view(at_, left()).starts_with(kByteOrderMark)) {
    at_ += kByteOrderMark.size();
    first = next();
    if (!first) return first.error();
  }
  Result<void> done;
  if (*first == '[') {
    ++at_;
    has_events_ = true;
    done = read_events();
    // In Chrome's own form the closing bracket may be missing.
    if (outcome_.cut && outcome_.cut_bytes == 0) outcome_.cut = false;
  } else if (*first == '{') {
    ++at_;
    done = read_members(path);
  } else if (*first == '\0') {
    const std::string damage = source_.damage();
    return not_a_trace(path, damage.empty() ? "it holds nothing" : damage);
  } else {
    return not_a_trace(path, "it is not JSON");
  }
  if (!done) return done.error();
  outcome_.damage = source_.damage();
  if (!has_events_) {
    return not_a_trace(
        path, outcome_.cut ? "it is cut off before its first event" : "it has no traceEvents");
  }
  return std::move(outcome_);
}

// The members of the outermost object.
Result<void> EventReader::read_members(const std::string& path) {
  for (;;) {
    const auto character = next();
    if (!character) return character.error();
    if (*character == '}') return {};
    if (*character == ',') {
      ++at_;
      continue;
    }
    JsonCursor cursor(at_, end_);
    std::string_view key;
    std::string_view value;
    bool is_events = false;
    if (cursor.string(key) && cursor.expect(':')) {
      const char kind = cursor.peek();
      is_events = key == "traceEvents" && kind == '[';
      const char* const begin = cursor.at();
      if (!is_events && cursor.fine() && cursor.skip())
        value = {begin, static_cast<std::size_t>(cursor.at() - begin)};
    }
    if (cursor.state() == JsonCursor::State::kTooShort) {
      const auto more = refill();
      if (!more) return more.error();
      if (*more) continue;
      cut_here();
      return {};
    }
    if (!cursor.fine()) {
      if (!has_events_) return not_a_trace(path, "it is not JSON that can be read");
      cut_here();
      return {};
    }
    at_ = cursor.at();
    if (is_events) {
      ++at_;
      has_events_ = true;
      if (auto done = read_events(); !done) return done;
    } else {
      handler_.metadata(key, value);
    }
  }
}

Result<void> EventReader::read_events() {
  for (;;) {
    const auto character = next();
    if (!character) return character.error();
    if (*character == ',') {
      ++at_;
      continue;
    }
    if (*character == ']') {
      ++at_;
      return {};
    }
    if (at_ == end_) {
      cut_here();
      return {};
    }
    JsonCursor cursor(at_, end_);
    if (parser_.parse(cursor, event_)) [[likely]] {
      ++outcome_.events;
      handler_.event(event_, parser_.category());
      at_ = cursor.at();
      continue;
    }
    if (cursor.state() == JsonCursor::State::kTooShort) {
      const auto more = refill();
      if (!more) return more.error();
      if (*more) continue;
    }
    const auto found = pass_over();
    if (!found) return found.error();
    if (!*found) return {};
  }
}

// What is here is no event. Goes to the next place from which one can be read; false if there is
// none.
Result<bool> EventReader::pass_over() {
  std::uint64_t passed = 0;
  bool is_again = false;  // the same place, with more behind it
  for (;;) {
    const char* const begin = at_ + (at_ == end_ || std::exchange(is_again, false) ? 0 : 1);
    const auto* candidate =
        static_cast<const char*>(std::memchr(begin, '{', static_cast<std::size_t>(end_ - begin)));
    if (candidate == nullptr) {
      passed += left();
      at_ = end_;
      const auto more = refill();
      if (!more) return more.error();
      if (!*more) break;
      continue;
    }
    passed += static_cast<std::uint64_t>(candidate - at_);
    at_ = candidate;
    JsonCursor cursor(at_, end_);
    if (parser_.parse(cursor, event_) && !event_.ph.empty()) {
      ++outcome_.broken_stretches;
      outcome_.broken_bytes += passed;
      return true;
    }
    const bool may_go_on = cursor.state() == JsonCursor::State::kTooShort && !ended_;
    if (may_go_on && left() < window_.size() / 2) {
      const auto more = refill();
      if (!more) return more.error();
      is_again = *more;
      if (is_again) continue;
    }
    // A quote that is never closed makes each attempt run to the window's end: not for ever.
    attempted_bytes_ += static_cast<std::uint64_t>(cursor.at() - at_);
    if (attempted_bytes_ > kMostAttemptedBytes) {
      passed += static_cast<std::uint64_t>(cursor.at() - at_);
      at_ = cursor.at();
    }
  }
  // Nothing more can be read.
  outcome_.cut = true;
  outcome_.cut_bytes += passed + left();
  at_ = end_;
  while (!ended_) {
    const auto more = refill();
    if (!more) return more.error();
    outcome_.cut_bytes += left();
    at_ = end_;
  }
  return false;
}

}  // namespace layertrace::kineto
