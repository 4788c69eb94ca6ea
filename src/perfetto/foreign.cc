#include "perfetto/foreign.h"

#include <algorithm>
#include <string_view>

namespace layertrace {
namespace {

bool starts_with(std::span<const std::uint8_t> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

}  // namespace

std::string describe_foreign(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return "the file is empty";
  struct Magic {
    std::string_view bytes;
    const char* text;
  };
  using namespace std::string_view_literals;
  static constexpr Magic kMagics[] = {
      {"\x1f\x8b"sv, "it looks like gzip (perhaps a torch.profiler trace)"},
      {"\x28\xb5\x2f\xfd"sv, "it looks like zstd-compressed data"},
      {"PK\x03\x04"sv, "it looks like a zip archive (perhaps a PyTorch checkpoint)"},
      {"SQLite format 3"sv, "it looks like an SQLite database (perhaps an nsys export)"},
      {"\x7f"
       "ELF"sv,
       "it looks like a program or library"},
      {"\x89PNG"sv, "it looks like a PNG picture"},
      {"%PDF"sv, "it looks like a PDF document"},
  };
  for (const Magic& magic : kMagics) {
    if (starts_with(bytes, magic.bytes)) return magic.text;
  }
  const auto first =
      std::find_if(bytes.begin(), bytes.end(), [](std::uint8_t c) { return c > ' '; });
  if (first != bytes.end() && (*first == '{' || *first == '[')) {
    return "it looks like JSON (perhaps a Chrome or torch.profiler trace)";
  }
  const auto sample = bytes.first(std::min<std::size_t>(bytes.size(), 512));
  const bool is_text = std::all_of(sample.begin(), sample.end(), [](std::uint8_t c) {
    return c >= ' ' || c == '\n' || c == '\r' || c == '\t';
  });
  return is_text ? "it looks like plain text" : "it is no Perfetto trace";
}

}  // namespace layertrace
