// Threads of the host by what a trace calls them: numbers, strings, −1, or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kineto/events.h"

namespace layertrace::kineto {

class ThreadTable {
 public:
  // Nothing where there are too many.
  std::optional<std::uint16_t> find_or_add(std::string_view pid, std::string_view tid);
  void name(std::string_view pid, std::string_view tid, const std::string& name);

  // Each with a number of its own, as the system's where that is one.
  std::vector<Thread> threads() const;
  std::uint64_t pid() const;  // of the first; 0 where it has none

 private:
  struct Known {
    std::string pid;
    std::string tid;
  };
  static std::string key(std::string_view pid, std::string_view tid);

  std::vector<Known> known_;
  std::unordered_map<std::string, std::uint16_t> numbers_;
  std::unordered_map<std::string, std::string> names_;
  std::uint16_t last_ = 0;  // what was found last is mostly found next
};

}  // namespace layertrace::kineto
