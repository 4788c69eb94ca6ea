#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace layertrace::tools {
namespace {

// Reads `fd` to its end. False if that takes longer than `timeout`.
bool read_all(int fd, std::chrono::milliseconds timeout, std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::array<char, 4096> piece{};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          deadline - std::chrono::steady_clock::now())
                          .count();
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) == 0) return false;
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got == 0) return true;
    if (got > 0) text.append(piece.data(), static_cast<size_t>(got));
    if (got < 0 && errno != EINTR) return false;
  }
}

}  // namespace

pid_t spawn(const std::vector<std::string>& words, int output, bool own_session) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (output >= 0) {
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t changed;
  sigemptyset(&none);
  sigemptyset(&changed);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&changed, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &changed);
  const int flags =
      POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (own_session ? POSIX_SPAWN_SETSID : 0);
  posix_spawnattr_setflags(&attributes, static_cast<short>(flags));

  pid_t child = 0;
  if (posix_spawnp(&child, argv[0], &files, &attributes, argv.data(), environ) != 0) child = 0;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return child;
}

std::optional<ChildOutput> output_of(const std::vector<std::string>& words,
                                     std::chrono::milliseconds timeout) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = spawn(words, ends[1], /*own_session=*/false);
  ::close(ends[1]);
  std::optional<ChildOutput> output;
  if (child > 0) {
    output.emplace();
    output->in_time = read_all(ends[0], timeout, output->text);
    if (!output->in_time) ::kill(child, SIGKILL);
    while (::waitpid(child, &output->status, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(ends[0]);
  return output;
}

}  // namespace layertrace::tools
