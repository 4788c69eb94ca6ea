#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace layertrace {

std::string system_error_text(int error) { return std::generic_category().message(error); }

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Not blocking: a pipe without a writer would be waited for. Means nothing to a regular file.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Error{"cannot read " + path, system_error_text(errno), ""};
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    const std::string cause =
        S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a regular file";
    ::close(fd);
    return Error{"cannot read " + path, cause, "Name a .pftrace file"};
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    ::close(fd);
    return MappedFile(nullptr, 0);
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  ::close(fd);
  if (data == MAP_FAILED) return Error{"cannot read " + path, system_error_text(error), ""};
  ::madvise(data, size, MADV_SEQUENTIAL);
  return MappedFile(static_cast<const std::uint8_t*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

}  // namespace layertrace
