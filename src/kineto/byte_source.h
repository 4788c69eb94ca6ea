// The bytes of a file, unpacked as they are read: plain, gzip or zstd, told by how it begins. What
// is held in memory does not depend on the file's size.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <layertrace/result.h>

namespace layertrace::kineto {

class ByteSource {
 public:
  static Result<std::unique_ptr<ByteSource>> open(const std::string& path);
  virtual ~ByteSource() = default;

  // Fills the buffer from its beginning, as a whole unless the end comes first. 0 at the end.
  virtual Result<std::size_t> read(std::span<char> buffer) = 0;

  // Of the file, as it is on disk.
  virtual std::uint64_t file_bytes() const noexcept = 0;
  virtual std::uint64_t bytes_taken() const noexcept = 0;
  // Why the bytes end before they should; "" where they do not.
  virtual std::string damage() const { return ""; }
};

}  // namespace layertrace::kineto
