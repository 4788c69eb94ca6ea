// `layertrace view`: Perfetto UI on a trace, wherever the user sits.
//
// Three situations, one command: a desktop with a network (the browser opens ui.perfetto.dev, which
// fetches the trace from a loopback server), a machine reached over ssh (the same, and the ssh line
// that brings the port to the user's own machine is printed), and a machine without network
// (--offline: a local copy of the UI is served beside the trace). The trace leaves the machine in
// none of them: ui.perfetto.dev reads it inside the browser.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include <layertrace/result.h>

#include "trace_server.h"

namespace layertrace::tools {

struct ViewOptions {
  std::string file;
  bool offline = false;      // serve a local copy of the UI too, until interrupted
  bool browser = true;       // open a browser, where there is a display
  int port = kPerfettoPort;  // ui.perfetto.dev reads from this one only; 0, any free port, is for
                             // `offline`
};

// Serves `options.file` and returns the exit code of the command. Without `offline` it ends by
// itself once the trace was fetched, with it at SIGINT or SIGTERM: 0 either way. 1 if there is
// nothing to serve or no way to, with the reason on `err`. While it runs, the two signals are
// blocked for the calling thread: call it from the main thread of a program that has no others.
int view(const ViewOptions& options, std::ostream& out, std::ostream& err);

// The folder of the copy of the UI that `offline` serves, if there is one.
Result<std::filesystem::path> find_perfetto_ui();

}  // namespace layertrace::tools
