// How this process was called, as a shell would take it, without what should stay secret.
#pragma once

#include <string>
#include <vector>

namespace layertrace {

// The program and its arguments; empty where the system does not tell.
std::vector<std::string> command_words();

// In one line. Values of options that are named after secrets (--api-key, WANDB_TOKEN=…), passwords
// and secrets of queries in URLs, and what looks like a service's access token read "***".
std::string shown_command(const std::vector<std::string>& words);

}  // namespace layertrace
