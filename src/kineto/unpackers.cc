#include "kineto/unpackers.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#ifdef LAYERTRACE_HAS_ISAL
#include <isa-l/igzip_lib.h>
#elif defined(LAYERTRACE_HAS_ZLIB)
#include <zlib.h>
#endif
#ifdef LAYERTRACE_HAS_ZSTD
#include <zstd.h>
#endif

namespace layertrace::kineto {
namespace {

#ifdef LAYERTRACE_HAS_ISAL
class GzipUnpacker final : public Unpacker {
 public:
  GzipUnpacker() { restart(); }

  Unpacked unpack(std::span<const char> packed, std::span<char> out) override {
    Unpacked result;
    if (state_->block_state == ISAL_BLOCK_FINISH) {
      if (packed.empty()) return {.state = Unpacked::kFinished};
      if (packed.front() != '\x1f') return {.taken = packed.size(), .state = Unpacked::kFinished};
      restart();  // another archive, or padding behind the last
    }
    state_->next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(packed.data()));
    state_->avail_in = static_cast<std::uint32_t>(packed.size());
    state_->next_out = reinterpret_cast<std::uint8_t*>(out.data());
    state_->avail_out = static_cast<std::uint32_t>(std::min<std::size_t>(out.size(), 1U << 30));
    const std::uint32_t room = state_->avail_out;
    const int status = isal_inflate(state_.get());
    result.taken = packed.size() - state_->avail_in;
    result.written = room - state_->avail_out;
    if (status < 0) {
      result.state = Unpacked::kBroken;
      result.problem = "the compressed data is damaged";
    } else if (state_->block_state == ISAL_BLOCK_FINISH) {
      result.state = Unpacked::kFinished;
    }
    return result;
  }

 private:
  void restart() {
    isal_inflate_init(state_.get());
    state_->crc_flag = ISAL_GZIP;
  }
  std::unique_ptr<inflate_state> state_ = std::make_unique<inflate_state>();
};
#elif defined(LAYERTRACE_HAS_ZLIB)
class GzipUnpacker final : public Unpacker {
 public:
  GzipUnpacker() { inflateInit2(&stream_, kGzipWindow); }
  ~GzipUnpacker() override { inflateEnd(&stream_); }
  GzipUnpacker(const GzipUnpacker&) = delete;  // zlib's state refers to its stream
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;

  Unpacked unpack(std::span<const char> packed, std::span<char> out) override {
    Unpacked result;
    if (finished_) {
      if (packed.empty()) return {.state = Unpacked::kFinished};
      if (packed.front() != '\x1f') return {.taken = packed.size(), .state = Unpacked::kFinished};
      inflateReset(&stream_);
      finished_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30));
    const uInt room = stream_.avail_out;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    result.taken = packed.size() - stream_.avail_in;
    result.written = room - stream_.avail_out;
    finished_ = status == Z_STREAM_END;
    if (finished_) {
      result.state = Unpacked::kFinished;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      result.state = Unpacked::kBroken;
      result.problem = "the compressed data is damaged";
    }
    return result;
  }

 private:
  static constexpr int kGzipWindow = 15 + 16;
  z_stream stream_{};
  bool finished_ = false;
};
#endif

#ifdef LAYERTRACE_HAS_ZSTD
class ZstdUnpacker final : public Unpacker {
 public:
  Unpacked unpack(std::span<const char> packed, std::span<char> out) override {
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    if (finished_ && packed.empty()) return {.state = Unpacked::kFinished};
    const std::size_t status = ZSTD_decompressStream(stream_.get(), &to, &in);
    Unpacked result{.taken = in.pos, .written = to.pos};
    if (ZSTD_isError(status) != 0) {
      result.state = Unpacked::kBroken;
      result.problem = "the compressed data is damaged";
    }
    finished_ = status == 0;
    if (finished_) result.state = Unpacked::kFinished;
    return result;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_{ZSTD_createDStream()};
  bool finished_ = false;
};
#endif

[[maybe_unused]] Error not_built_in(const std::string& what, const std::string& command) {
  return {"", "it is packed with " + what + ", and this layertrace was built without it",
          "Unpack it first: " + command};
}

}  // namespace

Packing packing_of(std::string_view head) noexcept {
  using namespace std::string_view_literals;
  if (head.starts_with("\x1f\x8b"sv)) return Packing::kGzip;
  if (head.starts_with("\x28\xb5\x2f\xfd"sv)) return Packing::kZstd;
  return Packing::kNone;
}

Result<std::unique_ptr<Unpacker>> make_unpacker(Packing packing) {
  if (packing == Packing::kZstd) {
#ifdef LAYERTRACE_HAS_ZSTD
    return std::unique_ptr<Unpacker>(std::make_unique<ZstdUnpacker>());
#else
    return not_built_in("zstd", "zstd -d FILE");
#endif
  }
#if defined(LAYERTRACE_HAS_ISAL) || defined(LAYERTRACE_HAS_ZLIB)
  return std::unique_ptr<Unpacker>(std::make_unique<GzipUnpacker>());
#else
  return not_built_in("gzip", "gunzip FILE");
#endif
}

}  // namespace layertrace::kineto
