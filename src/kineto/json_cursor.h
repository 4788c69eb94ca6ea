// Walks over JSON text that is in memory only in part. Every step either succeeds, or finds that
// the text ends too early (more must be read, and the step be made again), or that it is no JSON.
// Nothing is copied or converted here: strings and numbers are views of the text, as it is.
//
// Depth costs nothing: what is skipped is skipped by counting its brackets.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace layertrace::kineto {

class JsonCursor {
 public:
  // Behind the text there must be one readable zero byte.
  JsonCursor(const char* begin, const char* end) noexcept : at_(begin), end_(end) {}

  enum class State : std::uint8_t { kFine, kTooShort, kBroken };
  State state() const noexcept { return state_; }
  bool fine() const noexcept { return state_ == State::kFine; }
  const char* at() const noexcept { return at_; }
  void move_to(const char* place) noexcept { at_ = place; }

  // The next character that is no white space, which it stays at; 0 where there is none.
  char peek() noexcept {
    while (static_cast<unsigned char>(*at_) <= ' ' && at_ != end_) ++at_;
    if (at_ == end_) [[unlikely]]
      state_ = State::kTooShort;
    return *at_;
  }
  // Goes over this character, if it is the next one.
  bool take(char wanted) noexcept {
    if (peek() != wanted || at_ == end_) return false;
    ++at_;
    return true;
  }
  bool expect(char wanted) noexcept {
    if (take(wanted)) [[likely]]
      return true;
    return fail();
  }
  bool fail() noexcept {
    if (state_ == State::kFine) state_ = at_ == end_ ? State::kTooShort : State::kBroken;
    return false;
  }

  // What is between the quotes, escapes as they are.
  bool string(std::string_view& text) noexcept {
    if (!expect('"')) return false;
    const char* const begin = at_;
    const char* close = begin;
    for (;;) {
      close = find_quote_or_backslash(close);
      if (close >= end_) [[unlikely]] {
        at_ = end_;
        return fail();
      }
      if (*close == '"') break;
      close += 2;
    }
    if (close >= end_) [[unlikely]] {
      at_ = end_;
      return fail();
    }
    text = {begin, static_cast<std::size_t>(close - begin)};
    at_ = close + 1;
    return true;
  }

  // A number, a string without its quotes, or a word (true, null, NaN). Other values are skipped,
  // and give an empty view.
  bool scalar(std::string_view& text) noexcept {
    const char first = peek();
    if (first == '"') return string(text);
    if (first == '{' || first == '[') {
      text = {};
      return skip();
    }
    return word(text);
  }

  // Any value.
  bool skip() noexcept {
    const char first = peek();
    std::string_view unused;
    if (first == '"') return string(unused);
    if (first != '{' && first != '[') return word(unused);
    ++at_;
    return skip_rest(1);
  }

  // To behind the bracket that closes so many levels.
  bool skip_rest(std::size_t depth) noexcept {
    std::string_view unused;
    for (;;) {
      switch (*at_) {
        case '"':
          if (!string(unused)) return false;
          continue;
        case '{':
        case '[':
          ++depth;
          break;
        case '}':
        case ']':
          if (--depth == 0) {
            ++at_;
            return true;
          }
          break;
        case '\0':
          if (at_ >= end_) return fail();
          break;
        default:
          break;
      }
      ++at_;
    }
  }

 private:
  bool word(std::string_view& text) noexcept {
    const char* const begin = at_;
    while (is_word(*at_)) ++at_;
    if (at_ == end_) return fail();  // it may go on
    text = {begin, static_cast<std::size_t>(at_ - begin)};
    return at_ != begin || fail();
  }
  static bool is_word(char c) noexcept {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '+' || c == '_';
  }

  // `end_` where there is none.
  const char* find_quote_or_backslash(const char* from) const noexcept {
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    while (end_ - from >= 16) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      const auto found = static_cast<unsigned>(_mm_movemask_epi8(
          _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash))));
      if (found != 0) return from + std::countr_zero(found);
      from += 16;
    }
#endif
    while (from < end_ && *from != '"' && *from != '\\') ++from;
    return from < end_ ? from : end_;
  }

  const char* at_;
  const char* end_;
  State state_ = State::kFine;
};

}  // namespace layertrace::kineto
