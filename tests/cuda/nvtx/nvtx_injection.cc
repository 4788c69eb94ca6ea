// An NVTX injection library, as tools such as Nsight Systems bring one: NVTX loads what
// NVTX_INJECTION64_PATH names into the program, hands it the tables of NVTX's functions, and calls
// what it puts there. Each push and pop of a domain's range becomes a line in the file that
// NVTX_LOG names:
//
//   THREAD push DOMAIN CATEGORY HOW MESSAGE    by tabs; THREAD is the kernel's id
//   THREAD pop DOMAIN
//   THREAD register DOMAIN MESSAGE
//
// HOW a message was given: `registered` with this domain before, as `text`, or neither (`none`).
//
// Each library of a process that has NVTX's headers compiled in calls it once more, with tables of
// its own.
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

// NVTX knows domains and strings by pointers that are ours to choose. None is ever freed.
struct Domain {
  std::string name;
  std::mutex mutex;
  std::map<std::uint32_t, std::string> categories;
  std::set<const std::string*> strings;

  std::string category(std::uint32_t number) {
    const std::lock_guard lock(mutex);
    const auto known = categories.find(number);
    return known != categories.end() ? known->second : "?" + std::to_string(number);
  }
  bool has(const std::string* text) {
    const std::lock_guard lock(mutex);
    return strings.contains(text);
  }
};

Domain& domain_of(nvtxDomainHandle_t handle) { return *reinterpret_cast<Domain*>(handle); }

std::string message_of(Domain& domain, const nvtxEventAttributes_t& attributes) {
  if (attributes.messageType == NVTX_MESSAGE_TYPE_REGISTERED) {
    const auto* text = reinterpret_cast<const std::string*>(attributes.message.registered);
    if (domain.has(text)) return "registered\t" + *text;
  }
  if (attributes.messageType == NVTX_MESSAGE_TYPE_ASCII)
    return "text\t" + std::string(attributes.message.ascii);
  return "none\t?";
}

// One write for a line, at the file's end: threads do not mix theirs, and a crash loses none.
void log(const std::string& what) {
  static const int kFile = [] {
    const char* path = std::getenv("NVTX_LOG");
    return path != nullptr ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
  }();
  const std::string line = std::to_string(syscall(SYS_gettid)) + '\t' + what + '\n';
  if (write(kFile, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
}

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  auto* domain = new Domain;
  domain->name = name;
  return reinterpret_cast<nvtxDomainHandle_t>(domain);
}

void NVTX_API name_category(nvtxDomainHandle_t handle, std::uint32_t number, const char* name) {
  Domain& domain = domain_of(handle);
  const std::lock_guard lock(domain.mutex);
  domain.categories[number] = name;
}

nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t handle, const char* text) {
  Domain& domain = domain_of(handle);
  log("register\t" + domain.name + '\t' + text);
  auto* string = new std::string(text);
  const std::lock_guard lock(domain.mutex);
  domain.strings.insert(string);
  return reinterpret_cast<nvtxStringHandle_t>(string);
}

int NVTX_API push(nvtxDomainHandle_t handle, const nvtxEventAttributes_t* attributes) {
  Domain& domain = domain_of(handle);
  log("push\t" + domain.name + '\t' + domain.category(attributes->category) + '\t' +
      message_of(domain, *attributes));
  return 0;
}

int NVTX_API pop(nvtxDomainHandle_t handle) {
  log("pop\t" + domain_of(handle).name);
  return 0;
}

template <typename Function>
void take_over(NvtxFunctionTable table, NvtxCallbackIdCore2 id, Function function) {
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): NVTX looks for it by this name
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
      size <= NVTX_CBID_CORE2_DomainCreateA)
    return 0;
  take_over(table, NVTX_CBID_CORE2_DomainCreateA, &create_domain);
  take_over(table, NVTX_CBID_CORE2_DomainNameCategoryA, &name_category);
  take_over(table, NVTX_CBID_CORE2_DomainRegisterStringA, &register_string);
  take_over(table, NVTX_CBID_CORE2_DomainRangePushEx, &push);
  take_over(table, NVTX_CBID_CORE2_DomainRangePop, &pop);
  return 1;
}
