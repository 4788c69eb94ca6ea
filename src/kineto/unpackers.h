// gzip and zstd, by the libraries that this was built with.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <layertrace/result.h>

namespace layertrace::kineto {

enum class Packing { kNone, kGzip, kZstd };
Packing packing_of(std::string_view head) noexcept;

struct Unpacked {
  std::size_t taken = 0;
  std::size_t written = 0;
  enum State { kGoesOn, kFinished, kBroken } state = kGoesOn;
  std::string problem = {};
};

class Unpacker {
 public:
  virtual ~Unpacker() = default;
  // Unpacks as much as fits. Several archives in a row are one. kFinished: it could end here.
  virtual Unpacked unpack(std::span<const char> packed, std::span<char> out) = 0;
};

Result<std::unique_ptr<Unpacker>> make_unpacker(Packing packing);

}  // namespace layertrace::kineto
