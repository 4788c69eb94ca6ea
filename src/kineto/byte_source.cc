#include "kineto/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "kineto/unpackers.h"

namespace layertrace::kineto {
namespace {

Error cannot_read(const std::string& path, std::string cause, std::string remedy) {
  return {"cannot read " + path, std::move(cause), std::move(remedy)};
}

class PlainFile final : public ByteSource {
 public:
  PlainFile(std::string path, int fd, std::uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  ~PlainFile() override { ::close(fd_); }
  PlainFile(const PlainFile&) = delete;  // one owner of the descriptor
  PlainFile& operator=(const PlainFile&) = delete;

  Result<std::size_t> read(std::span<char> buffer) override {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
      const ssize_t count = ::read(fd_, buffer.data() + filled, buffer.size() - filled);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return cannot_read(path_, system_error_text(errno), "");
      if (count == 0) break;
      filled += static_cast<std::size_t>(count);
    }
    taken_ += filled;
    return filled;
  }
  std::uint64_t file_bytes() const noexcept override { return size_; }
  std::uint64_t bytes_taken() const noexcept override { return taken_; }

  // Back to the beginning.
  bool rewind() noexcept {
    taken_ = 0;
    return ::lseek(fd_, 0, SEEK_SET) == 0;
  }

 private:
  std::string path_;
  int fd_;
  std::uint64_t size_;
  std::uint64_t taken_ = 0;
};

// A packed file, piece by piece.
class PackedFile final : public ByteSource {
 public:
  PackedFile(std::string path, std::unique_ptr<PlainFile> file, std::unique_ptr<Unpacker> unpacker)
      : path_(std::move(path)),
        file_(std::move(file)),
        unpacker_(std::move(unpacker)),
        packed_(kPieceBytes) {}

  Result<std::size_t> read(std::span<char> buffer) override;
  std::uint64_t file_bytes() const noexcept override { return file_->file_bytes(); }
  std::uint64_t bytes_taken() const noexcept override { return file_->bytes_taken(); }
  std::string damage() const override { return damage_; }

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
  // Traces shrink to a tenth or a thirtieth. What grows more than this is not one.
  static constexpr std::uint64_t kMostRatio = 400;
  static constexpr std::uint64_t kAlwaysAllowed = std::uint64_t{256} << 20;

  std::string path_;
  std::unique_ptr<PlainFile> file_;
  std::unique_ptr<Unpacker> unpacker_;
  std::vector<char> packed_;
  std::span<const char> left_;  // of the piece
  std::uint64_t unpacked_ = 0;
  std::string damage_;
  bool ended_ = false;
};

Result<std::size_t> PackedFile::read(std::span<char> buffer) {
  std::size_t filled = 0;
  while (filled < buffer.size() && !ended_) {
    if (left_.empty()) {
      const auto count = file_->read(packed_);
      if (!count) return count.error();
      left_ = std::span(packed_).first(*count);
    }
    const bool is_last = left_.empty();
    const Unpacked step = unpacker_->unpack(left_, buffer.subspan(filled));
    filled += step.written;
    unpacked_ += step.written;
    left_ = left_.subspan(step.taken);
    if (step.state == Unpacked::kBroken) {
      damage_ = step.problem;
      ended_ = true;
    } else if (is_last && step.written == 0) {
      if (step.state != Unpacked::kFinished) damage_ = "the compressed data is cut off";
      ended_ = true;
    }
  }
  if (unpacked_ > kAlwaysAllowed && unpacked_ > kMostRatio * file_->file_bytes()) {
    return cannot_read(path_, "it unpacks to more than 400 times its size, as no trace does",
                       "If it is one, unpack it first and import the JSON");
  }
  return filled;
}

}  // namespace

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return cannot_read(path, system_error_text(errno),
                       errno == ENOENT ? "Check the path" : "Choose a file that you may read");
  }
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return cannot_read(path, "it is not a regular file", "Name the trace.json or trace.json.gz");
  }
  auto file = std::make_unique<PlainFile>(path, fd, static_cast<std::uint64_t>(status.st_size));
  std::array<char, 4> head{};
  const auto count = file->read(head);
  if (!count) return count.error();
  if (*count == 0) return cannot_read(path, "it is empty", "Export the trace again");
  if (!file->rewind()) return cannot_read(path, system_error_text(errno), "");

  const std::string_view magic(head.data(), *count);
  const Packing packing = packing_of(magic);
  if (packing == Packing::kNone) return std::unique_ptr<ByteSource>(std::move(file));
  auto unpacker = make_unpacker(packing);
  if (!unpacker) return cannot_read(path, unpacker.error().cause, unpacker.error().remedy);
  return std::unique_ptr<ByteSource>(
      std::make_unique<PackedFile>(path, std::move(file), std::move(*unpacker)));
}

}  // namespace layertrace::kineto
