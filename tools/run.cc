#include "run.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

namespace layertrace::tools {
namespace {

namespace fs = std::filesystem;

// Steps before the first that is recorded warm up where they are few: CUDA graphs are mostly
// captured there, and a capture is seen only while hooks are on.
constexpr Schedule kUsual{.skip = 0, .warmup = 7, .record = 5, .repeat = 1};
constexpr std::uint64_t kWarmup = 2;
constexpr std::uint64_t kMostWarmup = 20;
constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

int fail(const Error& error, int code) {
  std::fprintf(stderr, "layertrace: %s\n", error.message().c_str());
  return code;
}

bool parse_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// The folder that `sitecustomize.py` is in: in a build, or in an installed package.
fs::path find_inject(const fs::path& root) {
  std::error_code error;
  for (const fs::path& folder : {root / "python/layertrace/inject", root / "inject"}) {
    if (fs::exists(folder / "sitecustomize.py", error)) return folder;
  }
  return {};
}

fs::path find_preload(const fs::path& root) {
  std::error_code error;
  for (const fs::path& folder : {root / "lib", root / LAYERTRACE_LIBDIR}) {
    const fs::path library = folder / "liblayertrace_run.so";
    if (fs::exists(library, error)) return library;
  }
  return {};
}

std::string prepended(const std::string& first, const std::string& name,
                      const Variables& environment) {
  const auto before = environment.find(name);
  return before == environment.end() || before->second.empty() ? first
                                                               : first + ":" + before->second;
}

// A folder for this run alone, removed at its end.
class NotesFolder {
 public:
  NotesFolder() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "layertrace-run-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~NotesFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  NotesFolder(const NotesFolder&) = delete;  // it removes what it made
  NotesFolder& operator=(const NotesFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// What the notes tell once the program has ended: nobody recorded, or someone could not finish.
void report(const fs::path& notes, const std::string& program) {
  std::error_code error;
  int processes = 0;
  for (const auto& entry : fs::directory_iterator(notes, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("process.")) continue;
    ++processes;
    std::string output;
    std::getline(std::ifstream(entry.path()), output);
    const std::string part = output + ".part";
    if (!output.empty() && fs::exists(part, error)) {
      std::fprintf(stderr,
                   "layertrace: the program ended before its trace was complete; what was recorded "
                   "until then is in %s\n",
                   part.c_str());
    }
  }
  if (processes == 0) {
    const bool has_torch = fs::exists(notes / "torch", error);
    std::fprintf(
        stderr, "layertrace: nothing is recorded: %s\n",
        has_torch ? "torch was there, but no module was called"
                  : (program +
                     " neither imported torch in Python nor links LibTorch (a Python that ignores "
                     "its environment, by -I, -E or -S, is not seen)")
                        .c_str());
  }
}

// Signals that are meant for the program; what a terminal sends, it sends to both.
volatile std::sig_atomic_t child = 0;
void forward(int signal) {
  if (child > 0) kill(static_cast<pid_t>(child), signal);
}

bool is_ignored(int signal) {
  struct sigaction current {};
  return sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

// What whoever started us ignores (nohup: SIGHUP) is neither ours nor the program's to act on.
void prepare_signals() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = &forward;
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    if (!is_ignored(signal)) sigaction(signal, &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  for (const int signal : {SIGINT, SIGQUIT}) sigaction(signal, &action, nullptr);
}

// In the child, which was forked before any signal was prepared: what was ignored stays so.
[[noreturn]] void become(const RunOptions& options, const Variables& variables,
                         const sigset_t& mask) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  std::signal(SIGPIPE, SIG_DFL);  // the command ignores it, the program need not
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> arguments;
  arguments.reserve(options.program.size() + 1);
  for (const std::string& argument : options.program)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int code = errno == ENOENT ? kNotFound : kNotExecutable;
  const std::string remedy =
      options.program[0].ends_with(".py")
          ? "Name Python, too: layertrace run -- python " + options.program[0]
          : "";
  fail({"cannot run " + options.program[0], std::strerror(errno), remedy}, code);
  _exit(code);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// As the program ended, so do we: a shell sees the same exit code, or the same signal.
int end_likewise(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  std::fflush(nullptr);
  std::signal(signal, SIG_DFL);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, signal);
  sigprocmask(SIG_UNBLOCK, &mask, nullptr);
  raise(signal);
  return 128 + signal;
}

Variables current_environment() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace

Result<Schedule> parse_steps(const std::string& steps) {
  if (steps.empty()) return kUsual;
  const Error wrong{"cannot record the steps '" + steps + "'", "this is no range of steps",
                    "Write the first and the one after the last, as in 5:10; 5: is all from 5 on"};
  const std::size_t colon = steps.find(':');
  if (colon == std::string::npos) return wrong;
  const std::string first_text = steps.substr(0, colon);
  const std::string end_text = steps.substr(colon + 1);
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  if (!first_text.empty() && !parse_number(first_text, first)) return wrong;
  if (!end_text.empty() && (!parse_number(end_text, end) || end <= first)) return wrong;
  const std::uint64_t warmup = first <= kMostWarmup ? first : kWarmup;
  return Schedule{.skip = first - warmup,
                  .warmup = warmup,
                  .record = end_text.empty() ? 0 : end - first,
                  .repeat = 1};
}

Result<Variables> run_environment(const fs::path& root, const fs::path& notes,
                                  const RunOptions& options, const Variables& environment) {
  const auto schedule = parse_steps(options.steps);
  if (!schedule) return schedule.error();
  if (const auto count = parse_counting(options.count); !count) return count.error();
  // Told now, and not when hours of training are over.
  std::error_code none;
  const fs::path folder = fs::path(options.output).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, none)) {
    return Error{"cannot write " + options.output, folder.string() + " is no folder",
                 "Create it first, or choose another path"};
  }
  const fs::path inject = find_inject(root);
  const fs::path preload = find_preload(root);
  if (inject.empty() && preload.empty()) {
    return Error{"cannot record a program",
                 "neither the Python package nor liblayertrace_run.so is beside the command, in " +
                     root.string(),
                 "Build them: `make build`, or `pip install .`"};
  }
  Variables variables;
  variables["LAYERTRACE_RUN"] = "1";
  variables["LAYERTRACE_RUN_OUTPUT"] =
      options.output.empty() ? "" : fs::absolute(options.output).string();
  variables["LAYERTRACE_RUN_SCHEDULE"] =
      fmt::format("{}:{}:{}", schedule->skip, schedule->warmup, schedule->record);
  variables["LAYERTRACE_RUN_OPS"] = options.ops ? "1" : "0";
  variables["LAYERTRACE_RUN_TIMING"] = options.timing;
  variables["LAYERTRACE_RUN_COUNT"] = options.count;
  variables["LAYERTRACE_RUN_NAME"] = options.name;
  variables["LAYERTRACE_RUN_FOLD_WRAPPERS"] = options.fold_wrappers ? "1" : "0";
  variables["LAYERTRACE_RUN_NOTES"] = notes.string();
  if (!inject.empty())
    variables["PYTHONPATH"] = prepended(inject.string(), "PYTHONPATH", environment);
  if (!preload.empty()) {
    if (preload.string().find_first_of(": ") != std::string::npos) {
      return Error{"cannot record a program",
                   "the loader takes no path with a space or a colon: " + preload.string(),
                   "Move layertrace to a folder without"};
    }
    variables["LD_PRELOAD"] = prepended(preload.string(), "LD_PRELOAD", environment);
  }
  return variables;
}

int run_program(const RunOptions& options) {
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  const NotesFolder notes;
  const auto variables = run_environment(command.parent_path().parent_path(), notes.path(), options,
                                         current_environment());
  if (!variables) return fail(variables.error(), 2);

  // Until the child's number is known, no signal may be forwarded to it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid < 0) return fail({"cannot run " + options.program[0], std::strerror(errno), ""}, 1);
  if (pid == 0) become(options, *variables, before);
  child = static_cast<std::sig_atomic_t>(pid);
  prepare_signals();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  const int status = wait_for(pid);
  const bool never_began = WIFEXITED(status) && (WEXITSTATUS(status) == kNotFound ||
                                                 WEXITSTATUS(status) == kNotExecutable);
  if (!notes.path().empty() && !never_began) report(notes.path(), options.program[0]);
  return end_likewise(status);
}

}  // namespace layertrace::tools
