#include "python_environment.h"

#include <sys/wait.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "child.h"

// The Python of the tree that this binary was built in, set by CMake.
#ifndef LAYERTRACE_DEFAULT_PYTHON
#define LAYERTRACE_DEFAULT_PYTHON ""
#endif

namespace layertrace::tools {
namespace {

// Long enough to import torch from a slow network disk.
constexpr auto kAnswerTimeout = std::chrono::seconds(60);

// It answers after each part: an import that hangs or crashes hides nothing that was known before.
// Without the empty entry of the path, a folder `torch` in the working directory is not taken for
// the package.
constexpr const char* kTorchQuestion = R"(
import sys
sys.path = [entry for entry in sys.path if entry]
import importlib.util, json, os, platform
answer = {"executable": sys.executable, "version": platform.python_version()}
def folder(package):
    found = importlib.util.find_spec(package)
    return os.path.dirname(found.origin) if found and found.origin else ""
def tell():
    print("\n" + json.dumps(answer), flush=True)
answer["torch_folder"] = folder("torch")
answer["package_folder"] = folder("layertrace")
tell()
def attempt(name, package):
    try:
        module = importlib.import_module(package)
        answer[name + "_version"] = str(module.__version__)
        return module
    except BaseException as error:
        text = " ".join(str(error).split())
        answer[name + "_error"] = f"{type(error).__name__}: {text}"
torch = attempt("torch", "torch") if answer["torch_folder"] else None
if torch:
    answer["torch_cuda"] = torch.version.cuda or ""
    answer["torch_devices"] = torch.cuda.device_count()
    tell()
if torch and answer["package_folder"]:
    attempt("package", "layertrace")
tell()
)";

std::string ending_of(const ChildOutput& output) {
  if (!output.in_time)
    return "it did not answer within " + std::to_string(kAnswerTimeout.count()) + " s";
  if (WIFSIGNALED(output.status))
    return std::string("it was ended by a signal: ") + strsignal(WTERMSIG(output.status));
  if (output.status != 0) return "it ended with code " + std::to_string(WEXITSTATUS(output.status));
  return "";
}

PythonEnvironment ask(const std::string& python) {
  PythonEnvironment found;
  const auto output = output_of({python, "-c", kTorchQuestion}, kAnswerTimeout);
  if (output) {
    if (auto answer = parse_answer(output->text)) found = *std::move(answer);
    found.error = ending_of(*output);
    if (found.error.empty() && found.version.empty()) found.error = "it gave no answer";
  } else {
    found.error = "there is no such program";
  }
  if (found.executable.empty()) found.executable = python;
  return found;
}

}  // namespace

std::vector<std::string> pythons_to_ask(const std::string& chosen, const GetVariable& environment) {
  const auto variable = [&](const char* name) {
    const char* value = environment(name);
    return std::string(value != nullptr ? value : "");
  };
  if (!chosen.empty()) return {chosen};
  if (const std::string named = variable("LAYERTRACE_PYTHON"); !named.empty()) return {named};
  std::vector<std::string> pythons;
  for (const char* activated : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string folder = variable(activated); !folder.empty())
      pythons.push_back(folder + "/bin/python");
  }
  if (const std::string built_with = LAYERTRACE_DEFAULT_PYTHON; !built_with.empty())
    pythons.push_back(built_with);
  pythons.emplace_back("python3");
  return pythons;
}

std::optional<PythonEnvironment> parse_answer(std::string_view printed) {
  while (!printed.empty()) {
    const std::size_t end = printed.rfind('\n');
    const std::string_view line = end == std::string_view::npos ? printed : printed.substr(end + 1);
    printed = end == std::string_view::npos ? "" : printed.substr(0, end);
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    const auto text = [&](const char* key) {
      const auto value = json.find(key);
      return value != json.end() && value->is_string() ? value->get<std::string>() : std::string();
    };
    PythonEnvironment found;
    found.executable = text("executable");
    found.version = text("version");
    found.torch_folder = text("torch_folder");
    found.torch_version = text("torch_version");
    found.torch_cuda = text("torch_cuda");
    found.torch_error = text("torch_error");
    if (const auto count = json.find("torch_devices"); count != json.end() && count->is_number())
      found.torch_devices = count->get<int>();
    found.package_folder = text("package_folder");
    found.package_version = text("package_version");
    found.package_error = text("package_error");
    return found;
  }
  return std::nullopt;
}

PythonEnvironment ask_python(const std::vector<std::string>& pythons) {
  PythonEnvironment first;
  for (const std::string& python : pythons) {
    PythonEnvironment found = ask(python);
    if (!found.torch_folder.empty()) return found;
    const bool better =
        first.executable.empty() || (first.version.empty() && !found.version.empty());
    if (better) first = std::move(found);
  }
  return first;
}

}  // namespace layertrace::tools
