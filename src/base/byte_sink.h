// Where bytes go: a file, a buffer in a test, nowhere.
#pragma once

#include <cstdint>
#include <span>

namespace layertrace {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Takes one block. Must not fail: a sink that cannot write keeps the block or counts it, and
  // tells at the end.
  virtual void write(std::span<const std::uint8_t> bytes) = 0;
};

}  // namespace layertrace
