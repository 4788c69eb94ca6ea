#include "disk.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>

namespace {

enum class Fault { kNone, kFailWrites, kFailRename, kHold, kDieInWrite, kDieInRename };

// The fault is set while no other thread writes, or is one word; so only it is atomic.
std::atomic<Fault> fault{Fault::kNone};
std::string& target() {
  static auto* path = new std::string;
  return *path;
}
std::atomic<long> bytes_left{0};
std::atomic<int> fault_error{0};

void arm(Fault kind, const std::string& path, long after_bytes, int error) {
  fault.store(Fault::kNone);
  target() = path;
  bytes_left.store(after_bytes);
  fault_error.store(error);
  fault.store(kind);
}

std::string name_of(int fd) {
  std::array<char, 4096> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), name.data(), name.size());
  return size > 0 ? std::string(name.data(), static_cast<std::size_t>(size)) : std::string();
}

// The file grows beside its final name, whatever that is called.
bool is_target(int fd) {
  const std::string name = name_of(fd);
  return name.starts_with(target()) && name.ends_with(".part");
}

ssize_t real_write(int fd, const void* data, std::size_t size) {
  return syscall(SYS_write, fd, data, size);
}

[[noreturn]] void die() {
  static_cast<void>(::kill(::getpid(), SIGKILL));
  for (;;) ::pause();
}

}  // namespace

namespace disk {

void fail_writes(const std::string& path, long after_bytes, int error) {
  arm(Fault::kFailWrites, path, after_bytes, error);
}
void fail_rename(const std::string& path, int error) { arm(Fault::kFailRename, path, 0, error); }
void hold() { arm(Fault::kHold, "", 0, 0); }
void release() { repair(); }
void die_in_write(const std::string& path, long after_bytes) {
  arm(Fault::kDieInWrite, path, after_bytes, 0);
}
void die_in_rename(const std::string& path) { arm(Fault::kDieInRename, path, 0, 0); }
void repair() { fault.store(Fault::kNone); }

}  // namespace disk

extern "C" __attribute__((visibility("default"))) ssize_t write(int fd, const void* data,
                                                                std::size_t size) {
  const Fault kind = fault.load();
  if (kind == Fault::kHold && name_of(fd).ends_with(".part")) {
    while (fault.load() == Fault::kHold) ::usleep(1000);
  } else if ((kind == Fault::kFailWrites || kind == Fault::kDieInWrite) && is_target(fd)) {
    const long left = bytes_left.fetch_sub(static_cast<long>(size)) - static_cast<long>(size);
    if (left < 0 && kind == Fault::kFailWrites) {
      errno = fault_error.load();
      return -1;
    }
    if (left < 0) {
      static_cast<void>(real_write(fd, data, size / 2));
      die();
    }
  }
  return real_write(fd, data, size);
}

extern "C" __attribute__((visibility("default"))) int rename(const char* from,
                                                             const char* to) noexcept {
  const Fault kind = fault.load();
  if (kind == Fault::kDieInRename && target() == to) die();
  if (kind == Fault::kFailRename && target() == to) {
    errno = fault_error.load();
    return -1;
  }
  return static_cast<int>(syscall(SYS_rename, from, to));
}
