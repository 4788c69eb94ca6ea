// Files that the command writes, and how it says that something failed.
#pragma once

#include <string>
#include <string_view>

#include <layertrace/result.h>

namespace layertrace::tools {

// How the command ends where it does not succeed; `run` and `simgpu` end as their program does.
inline constexpr int kFailed = 1;      // what was asked for could not be done
inline constexpr int kUsageError = 2;  // the command line makes no sense

// One line on stderr; the exit code that goes with it.
int tell_error(const Error& error, int exit_code = kFailed);

// Writes the whole of it, over what was there; "-" is the standard output.
Result<void> write_output(const std::string& path, std::string_view text);

Result<std::string> read_file(const std::string& path);

// ".svg" of "a/tree.SVG"; "" without any.
std::string extension_of(const std::string& path);

}  // namespace layertrace::tools
