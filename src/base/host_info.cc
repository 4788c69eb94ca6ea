#include "base/host_info.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>

namespace layertrace {
namespace {

// The value of `key<separator>value` in a file of such lines.
std::string find_value(const char* path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t\"", at + 1);
    if (first == std::string::npos) return "";
    return line.substr(first, line.find_last_not_of(" \t\"") - first + 1);
  }
  return "";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

}  // namespace

void describe_host(RunInfo& run) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) run.host = host.data();
  utsname system{};
  uname(&system);
  run.os = find_value("/etc/os-release", "PRETTY_NAME", '=');
  if (run.os.empty()) run.os = system.sysname;
  run.os += std::string(", ") + system.sysname + " " + system.release;
  run.cpu = find_value("/proc/cpuinfo", "model name", ':');
  if (run.cpu.empty()) run.cpu = system.machine;
  run.cpu_count = static_cast<std::uint64_t>(sysconf(_SC_NPROCESSORS_ONLN));
  run.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  run.pid = static_cast<std::uint64_t>(getpid());
  run.program = program_invocation_short_name;
  run.created = utc_now();
}

}  // namespace layertrace
