#include "fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <layertrace/report.h>
#include <layertrace/trace.h>

namespace layertrace::fuzz {
namespace {

// A file that is nowhere but in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : fd_(::memfd_create("fuzz", 0)) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
      if (count <= 0) std::abort();
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;  // one owner of the descriptor
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

void import_bytes(std::span<const std::uint8_t> bytes) {
  const MemoryFile file(bytes);
  const std::string output =
      (std::filesystem::temp_directory_path() / ("fuzz-" + std::to_string(::getpid()))).string();
  const auto profile = import_trace(file.path(), {.output = output});
  if (!profile) {
    require(!std::filesystem::exists(output));
    return;
  }
  std::uint64_t events = profile->health.source.kept + profile->health.source.merged;
  for (const Unattributed& group : profile->health.source.left_out) events += group.count;
  require(events == profile->health.source.events);
  const auto loaded = load(output);
  std::filesystem::remove(output);
  require(loaded.has_value());
  require(loaded->health.activities == profile->health.activities);
  require(loaded->health.activity_ns == profile->health.activity_ns);
  require(!layers_json(*loaded).empty());
}

void load_bytes(std::span<const std::uint8_t> bytes) {
  const MemoryFile file(bytes);
  const auto profile = load(file.path());
  if (profile) require(!layers_json(*profile).empty());
  (void)info(file.path());
}

}  // namespace layertrace::fuzz
