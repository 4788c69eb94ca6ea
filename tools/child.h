// Programs that the command starts and listens to.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace layertrace::tools {

// Starts `words` without a shell, with no terminal to read from or write to but `output` (a file
// descriptor, -1 for none), and with the signals that this program changed as they are by default.
// The process id, or 0 where there is no such program.
pid_t spawn(const std::vector<std::string>& words, int output, bool own_session);

struct ChildOutput {
  std::string text;
  bool in_time =
      true;        // false: it was ended for taking too long, and the text is what came until then
  int status = 0;  // as waitpid() has it

  bool succeeded() const { return in_time && status == 0; }
};

// What a program prints until it ends or its time is over. Nothing where it cannot be started.
std::optional<ChildOutput> output_of(const std::vector<std::string>& words,
                                     std::chrono::milliseconds timeout);

}  // namespace layertrace::tools
