#include "output.h"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

namespace layertrace::tools {

int tell_error(const Error& error, int exit_code) {
  std::cerr << "layertrace: " << error.message() << '\n';
  return exit_code;
}

Result<void> write_output(const std::string& path, std::string_view text) {
  const bool is_stdout = path == "-";
  std::FILE* file = is_stdout ? stdout : std::fopen(path.c_str(), "wb");
  if (file == nullptr)
    return Error{"cannot write " + path, std::strerror(errno), "Give another place with -o"};
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  const int error = errno;
  const bool is_closed = is_stdout || std::fclose(file) == 0;
  if (is_written && is_closed) return {};
  if (is_stdout && error == EPIPE) return {};  // whoever read it has seen enough
  return Error{"cannot write " + (is_stdout ? "the output" : path), std::strerror(error), ""};
}

Result<std::string> read_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return Error{"cannot read " + path, std::strerror(errno), ""};
  std::string text;
  std::array<char, 1 << 16> buffer{};
  std::size_t size = 0;
  while ((size = std::fread(buffer.data(), 1, buffer.size(), file)) > 0)
    text.append(buffer.data(), size);
  const bool has_failed = std::ferror(file) != 0;
  std::fclose(file);
  if (has_failed) return Error{"cannot read " + path, "it could not be read to its end", ""};
  return text;
}

std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

}  // namespace layertrace::tools
