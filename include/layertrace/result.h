// Result<T>: what the control path of layertrace returns instead of throwing.
//
// Starting a session, stopping it, reading a file: each can fail for reasons that the caller must
// be told (a full disk, a second session, a foreign file). Such a function returns a Result, which
// holds either a value or an Error that says what was tried, what went wrong and what to do next.
// The member names are those of std::expected.
//
//   auto profile = layertrace::load("run.pftrace");
//   if (!profile) {
//     std::cerr << profile.error().message() << '\n';
//     return 1;
//   }
//   std::cout << layertrace::tree(*profile);
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#if defined(__GNUC__)
#define LAYERTRACE_API __attribute__((visibility("default")))
#else
#define LAYERTRACE_API
#endif

namespace layertrace {

// Three short sentences' worth of an error. `tried` and `cause` are always set, `remedy` where
// there is one to name.
struct Error {
  std::string tried;
  std::string cause;
  std::string remedy;

  // "cannot write run.pftrace: No space left on device. Free some space and call save() again."
  std::string message() const {
    std::string text = tried + ": " + cause;
    if (!remedy.empty()) text += ". " + remedy;
    return text;
  }
};

// Holds a T or an Error. Reading the side that is not there ends the program with a message: it is
// a bug of the caller, as dereferencing a null pointer is, and silence would cost more.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Error;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(*-explicit-*)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  void check() const {
    if (!has_value()) die(error());
  }
  [[noreturn]] static void die(const Error& error) {
    std::fputs(
        ("layertrace: the value of a failed Result was read: " + error.message() + "\n").c_str(),
        stderr);
    std::abort();
  }

  std::variant<T, Error> state_;
};

// A step that yields nothing but can fail.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT(*-explicit-*)

  bool has_value() const noexcept { return !failed_; }
  explicit operator bool() const noexcept { return !failed_; }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace layertrace
