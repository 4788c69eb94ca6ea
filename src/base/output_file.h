// A file that grows beside its final name and takes that name only when it is whole. A disk that
// fills up is not the end: what can no longer be written is kept in memory up to a limit, and can
// be written elsewhere.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <layertrace/result.h>

#include "base/byte_sink.h"

namespace layertrace {

class OutputFile final : public ByteSink {
 public:
  // Writes to `<path>.part`; with an empty path, to a temporary file without a name.
  static Result<std::unique_ptr<OutputFile>> create(const std::string& path,
                                                    std::size_t memory_limit_bytes);

  ~OutputFile() override;
  OutputFile(const OutputFile&) = delete;  // one owner of the descriptor
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::uint8_t> block) override;

  // Gives the file its name. An error leaves everything as it is: the part file, and what is kept
  // in memory.
  Result<void> commit();

  // For a recording of nothing: a file that already has the name keeps it, and the part file goes.
  // False where there is none, and nothing has changed. copy_to() works as before.
  bool leave_existing() noexcept;

  // Writes all there is to another place, which appears whole or not at all.
  Result<void> copy_to(const std::string& path) const;

  // Adds to such copies what was written since. One that is no longer as it was left is the user's,
  // and stays so. After commit().
  Result<void> update_copies() const;

  // Whole blocks that neither the disk nor the memory would take.
  std::uint64_t lost_blocks() const noexcept { return lost_blocks_; }
  const std::string& path() const noexcept { return path_; }
  // Where the recording is until it gets its name; "" without one.
  const std::string& part() const noexcept { return part_; }
  std::uint64_t size() const noexcept { return written_ + kept_.size(); }

  // The file was not needed after all: removes it.
  void discard() noexcept;
  // In a forked child: the parent alone writes.
  void abandon() noexcept;

 private:
  static Result<std::unique_ptr<OutputFile>> create(const std::string& path,
                                                    const std::string& part,
                                                    std::size_t memory_limit_bytes);
  OutputFile(std::string path, const std::string& part, int fd, std::size_t memory_limit);
  bool write_now(std::span<const std::uint8_t> block);
  Result<void> write_kept();
  Result<void> copy_into(OutputFile& copy) const;

  // A copy as it was left. An inode's number may be another file's soon, so the time counts, too.
  struct Copy {
    std::string target;
    dev_t device = 0;
    ino_t inode = 0;
    timespec modified = {};
    std::uint64_t size = 0;
  };
  Result<void> update(Copy& copy) const;

  std::string path_;    // as it was given
  std::string target_;  // the same, wherever the program goes
  std::string part_;    // its name until then
  int fd_;
  std::size_t memory_limit_;
  std::uint64_t written_ = 0;  // bytes of whole blocks
  int error_ = 0;              // errno of the first failure
  std::vector<std::uint8_t> kept_;
  std::uint64_t lost_blocks_ = 0;
  bool committed_ = false;
  mutable std::vector<Copy> copies_;  // what is written stays the same; copies may lag behind
};

}  // namespace layertrace
