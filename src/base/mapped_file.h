// A file's bytes, mapped for reading.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <layertrace/result.h>

namespace layertrace {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;  // one owner unmaps
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::uint8_t> bytes() const noexcept { return {data_, size_}; }

 private:
  MappedFile(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  const std::uint8_t* data_;
  std::size_t size_;
};

// "Error: …" in the words of the system, for errno values.
std::string system_error_text(int error);

}  // namespace layertrace
