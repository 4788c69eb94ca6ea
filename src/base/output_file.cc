#include "base/output_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/mapped_file.h"

namespace layertrace {
namespace {

constexpr const char* kSuffix = ".part";

Error cannot_write(const std::string& path, int error) {
  std::string remedy = "Choose another path";
  if (error == ENOENT) remedy = "Create the folder first, or choose another path";
  if (error == EACCES || error == EROFS || error == EPERM)
    remedy = "Choose a path that you may write to";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    remedy = "Free some space, or choose another path";
  if (error == EISDIR) remedy = "Name a file, not a folder";
  return {"cannot write " + path, system_error_text(error), remedy};
}

// A write beyond RLIMIT_FSIZE fails with EFBIG and also raises SIGXFSZ in the writing thread, which
// ends a program that does not expect it. While one of these lives, it is an error like any other.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() noexcept {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoFileSizeSignal() {
    if (sigismember(&before_, SIGXFSZ) == 1) return;
    const timespec at_once{};
    while (sigtimedwait(&signal_, nullptr, &at_once) == SIGXFSZ) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) =
      delete;  // it stands for a stretch of one thread's time
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t signal_;
  sigset_t before_;
};

// 0, or an errno value.
int write_all(int fd, std::span<const std::uint8_t> bytes) {
  const NoFileSizeSignal no_signal;
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

bool is_same_file(int fd, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// An empty file that is ours alone: two recordings in one file would be none. -EWOULDBLOCK if it is
// another's, who may be in this process or in another (a forked child with its parent's options);
// else a descriptor, or a negative errno value.
int open_locked(const std::string& path) {
  for (;;) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return -errno;
    // The lock goes when the last descriptor does, also by a kill. A file system without locks is
    // taken as it is.
    const bool taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    // Between the two calls its owner may have finished and renamed it: then it is a whole trace,
    // and not to be touched.
    if (!taken && is_same_file(fd, path)) return ::ftruncate(fd, 0) == 0 ? fd : (::close(fd), -EIO);
    ::close(fd);
    if (taken) return -EWOULDBLOCK;
  }
}

// The program may change its folder while it records.
std::string absolute(const std::string& path) {
  std::error_code error;
  std::string result = path.empty() ? path : std::filesystem::absolute(path, error).string();
  return error ? path : result;
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

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string& path,
                                                       std::size_t memory_limit_bytes) {
  if (path.empty()) {
    const int fd = open_unnamed();
    if (fd < 0) return cannot_write("a temporary file", errno);
    return std::unique_ptr<OutputFile>(new OutputFile("", "", fd, memory_limit_bytes));
  }
  return create(path, path + kSuffix, memory_limit_bytes);
}

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string& path,
                                                       const std::string& part,
                                                       std::size_t memory_limit_bytes) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return cannot_write(path, EISDIR);
    if (!S_ISREG(status.st_mode))
      return Error{"cannot write " + path, "it is not a regular file", "Choose another path"};
  }
  const int fd = open_locked(part);
  if (fd == -EWOULDBLOCK) {
    return Error{"cannot write " + path, "another recording is being written there",
                 "Choose another path"};
  }
  if (fd < 0) return cannot_write(path, -fd);
  return std::unique_ptr<OutputFile>(new OutputFile(path, part, fd, memory_limit_bytes));
}

OutputFile::OutputFile(std::string path, const std::string& part, int fd, std::size_t memory_limit)
    : path_(std::move(path)),
      target_(absolute(path_)),
      part_(absolute(part)),
      fd_(fd),
      memory_limit_(memory_limit) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::discard() noexcept {
  if (!part_.empty() && !committed_) ::unlink(part_.c_str());
  abandon();
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
  if (::ftruncate(fd_, static_cast<off_t>(written_)) == 0)
    ::lseek(fd_, static_cast<off_t>(written_), SEEK_SET);
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
  if (fd_ < 0)
    return Error{"cannot write " + path_, "it belongs to the process that forked this one", ""};
  auto written = write_kept();
  if (lost_blocks_ != 0) {
    Error error = cannot_write(path_.empty() ? "a temporary file" : path_, error_);
    error.cause += "; the end of the trace is lost";
    return error;
  }
  if (!written) return written;
  if (path_.empty() || committed_) return {};
  if (::rename(part_.c_str(), target_.c_str()) != 0) return cannot_write(path_, errno);
  committed_ = true;
  return {};
}

bool OutputFile::leave_existing() noexcept {
  if (fd_ < 0 || path_.empty() || committed_ || ::access(target_.c_str(), F_OK) != 0) return false;
  ::unlink(part_.c_str());
  committed_ = true;  // there is nothing more to be named
  return true;
}

Result<void> OutputFile::copy_to(const std::string& path) const {
  if (path.empty()) return Error{"cannot save the trace", "no path was given", "Name a file"};
  // A part file of its own: the one beside `path` may be this recording, whose commit failed.
  auto target = create(path, path + ".copy" + kSuffix, 0);
  if (!target) return target.error();
  OutputFile& copy = **target;
  auto copied = copy_into(copy);
  if (copied) copied = copy.commit();
  if (!copied) {
    ::unlink(copy.part_.c_str());
    return copied;
  }
  if (absolute(path) == target_ && !committed_)
    ::unlink(part_.c_str());  // what it holds now has its name; the open descriptor still reads it
  struct stat status {};
  if (::fstat(copy.fd_, &status) == 0) {
    std::erase_if(copies_, [&](const Copy& each) { return each.target == copy.target_; });
    copies_.push_back({copy.target_, status.st_dev, status.st_ino, status.st_mtim, size()});
  }
  return copied;
}

Result<void> OutputFile::update_copies() const {
  Result<void> result;
  for (Copy& copy : copies_) {
    if (auto updated = update(copy); !updated) result = updated;
  }
  return result;
}

Result<void> OutputFile::update(Copy& copy) const {
  std::vector<std::uint8_t> added(size() - std::min(size(), copy.size));
  const ssize_t count = ::pread(fd_, added.data(), added.size(), static_cast<off_t>(copy.size));
  if (std::cmp_not_equal(count, added.size())) {
    return Error{"cannot read back the recording",
                 count < 0 ? system_error_text(errno) : "it is shorter than written", ""};
  }
  const int fd = ::open(copy.target.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? Result<void>() : cannot_write(copy.target, errno);
  struct stat status {};
  const bool is_as_left =
      ::fstat(fd, &status) == 0 && status.st_dev == copy.device && status.st_ino == copy.inode &&
      status.st_mtim.tv_sec == copy.modified.tv_sec &&
      status.st_mtim.tv_nsec == copy.modified.tv_nsec && std::cmp_equal(status.st_size, copy.size);
  const int error = is_as_left ? write_all(fd, added) : 0;
  if (error != 0 && ::ftruncate(fd, static_cast<off_t>(copy.size)) != 0)
    copy.size = 0;  // a stump that is no longer as it was left
  if (is_as_left && ::fstat(fd, &status) == 0) copy.modified = status.st_mtim;
  ::close(fd);
  if (error != 0) return cannot_write(copy.target, error);
  if (is_as_left) copy.size += added.size();
  return {};
}

Result<void> OutputFile::copy_into(OutputFile& copy) const {
  std::vector<std::uint8_t> buffer(std::size_t{1} << 20);
  for (std::uint64_t offset = 0; offset < written_;) {
    const ssize_t count = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return Error{"cannot read back the recording",
                   count < 0 ? system_error_text(errno) : "it is shorter than written", ""};
    }
    const std::size_t useful =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(count), written_ - offset);
    copy.write(std::span(buffer).first(useful));
    offset += useful;
  }
  copy.write(kept_);
  if (copy.error_ != 0) return cannot_write(copy.path_, copy.error_);
  return {};
}

}  // namespace layertrace
