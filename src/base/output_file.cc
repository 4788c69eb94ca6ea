#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/mapped_file.h"

namespace layertrace {
namespace {

constexpr const char* kSuffix = ".part";

Error cannot_write(const std::string& path, int error) {
  std::string remedy = "Choose another path";
  if (error == ENOENT) remedy = "Create the folder first, or choose another path";
  if (error == EACCES || error == EROFS || error == EPERM) remedy = "Choose a path that you may write to";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) remedy = "Free some space, or choose another path";
  if (error == EISDIR) remedy = "Name a file, not a folder";
  return {"cannot write " + path, system_error_text(error), remedy};
}

// 0, or an errno value.
int write_all(int fd, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

int open_unnamed() {
  const char* folder = std::getenv("TMPDIR");
  std::string base = folder != nullptr && *folder != '\0' ? folder : "/tmp";
  const int fd = ::open(base.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  base += "/layertrace-XXXXXX";  // a file system without O_TMPFILE
  const int named = ::mkostemp(base.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(base.c_str());
  return named;
}

}  // namespace

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string& path, std::size_t memory_limit_bytes) {
  if (path.empty()) {
    const int fd = open_unnamed();
    if (fd < 0) return cannot_write("a temporary file", errno);
    return std::unique_ptr<OutputFile>(new OutputFile("", fd, memory_limit_bytes));
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return cannot_write(path, EISDIR);
    if (!S_ISREG(status.st_mode)) return Error{"cannot write " + path, "it is not a regular file", "Choose another path"};
  }
  const int fd = ::open((path + kSuffix).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return cannot_write(path, errno);
  return std::unique_ptr<OutputFile>(new OutputFile(path, fd, memory_limit_bytes));
}

OutputFile::OutputFile(std::string path, int fd, std::size_t memory_limit)
    : path_(std::move(path)), fd_(fd), memory_limit_(memory_limit) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::abandon() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool OutputFile::write_now(std::span<const std::uint8_t> block) {
  const int error = write_all(fd_, block);
  if (error == 0) {
    written_ += block.size();
    return true;
  }
  // Back to the last whole block, so that the file on disk stays readable.
  if (::ftruncate(fd_, static_cast<off_t>(written_)) == 0) ::lseek(fd_, static_cast<off_t>(written_), SEEK_SET);
  error_ = error;
  return false;
}

void OutputFile::write(std::span<const std::uint8_t> block) {
  if (fd_ < 0) return;
  if (error_ == 0 && write_now(block)) return;
  // Timestamps count up from packet to packet, so nothing may follow a hole.
  if (lost_blocks_ != 0 || kept_.size() + block.size() > memory_limit_) {
    ++lost_blocks_;
    return;
  }
  kept_.insert(kept_.end(), block.begin(), block.end());
}

Result<void> OutputFile::write_kept() {
  if (!kept_.empty()) {
    if (!write_now(kept_)) return cannot_write(path_.empty() ? "a temporary file" : path_, error_);
    kept_.clear();
    kept_.shrink_to_fit();
  }
  return {};
}

Result<void> OutputFile::commit() {
  if (auto written = write_kept(); !written) return written;
  if (lost_blocks_ != 0) {
    Error error = cannot_write(path_.empty() ? "a temporary file" : path_, error_);
    error.cause += "; the end of the trace is lost";
    return error;
  }
  if (path_.empty() || committed_) return {};
  if (::rename((path_ + kSuffix).c_str(), path_.c_str()) != 0) return cannot_write(path_, errno);
  committed_ = true;
  return {};
}

Result<void> OutputFile::copy_to(const std::string& path) const {
  auto target = create(path, 0);
  if (!target) return target.error();
  OutputFile& copy = **target;
  std::vector<std::uint8_t> buffer(std::size_t{1} << 20);
  for (std::uint64_t offset = 0; offset < written_;) {
    const ssize_t count = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      ::unlink((path + kSuffix).c_str());
      return Error{"cannot read back the recording", count < 0 ? system_error_text(errno) : "it is shorter than written", ""};
    }
    const std::size_t useful = std::min<std::uint64_t>(static_cast<std::uint64_t>(count), written_ - offset);
    copy.write(std::span(buffer).first(useful));
    offset += useful;
  }
  copy.write(kept_);
  if (copy.error_ != 0) {
    ::unlink((path + kSuffix).c_str());
    return cannot_write(path, copy.error_);
  }
  return copy.commit();
}

}  // namespace layertrace
