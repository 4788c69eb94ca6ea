#include "base/call_slots.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace layertrace {
namespace {

// The loader's tables tell addresses as numbers.
template <typename T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * calls = nullptr;  // entries for functions
  std::size_t calls_bytes = 0;
  const ElfW(Rela) * others = nullptr;  // and for all else; a library linked with -z now mixes them
  std::size_t others_bytes = 0;
};

// The loader has turned the addresses in this table into real ones.
Tables read_tables(const ElfW(Dyn) * entry) {
  Tables tables;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const std::uintptr_t address = entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = at<const ElfW(Sym)>(address);
        break;
      case DT_STRTAB:
        tables.names = at<const char>(address);
        break;
      case DT_JMPREL:
        tables.calls = at<const ElfW(Rela)>(address);
        break;
      case DT_PLTRELSZ:
        tables.calls_bytes = entry->d_un.d_val;
        break;
      case DT_RELA:
        tables.others = at<const ElfW(Rela)>(address);
        break;
      case DT_RELASZ:
        tables.others_bytes = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return tables;
}

bool is_call(std::uint64_t type) {
#if defined(__x86_64__)
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#else
  return false;
#endif
}

struct Search {
  std::string_view library;
  std::string_view symbol;
  std::vector<CallSlot> slots;
};

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

void search_in(Search& search, std::uintptr_t base, const Tables& tables,
               const ElfW(Rela) * relocations, std::size_t bytes, Range read_only) {
  for (std::size_t i = 0; i < bytes / sizeof(ElfW(Rela)); ++i) {
    const ElfW(Rela)& relocation = relocations[i];
    if (!is_call(ELF64_R_TYPE(relocation.r_info))) continue;
    const auto& symbol = tables.symbols[ELF64_R_SYM(relocation.r_info)];
    if (search.symbol != tables.names + symbol.st_name) continue;
    const std::uintptr_t address = base + relocation.r_offset;
    auto** entry = at<void*>(address);
    search.slots.push_back({entry, address >= read_only.begin && address < read_only.end, *entry});
  }
}

int visit(dl_phdr_info* library, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (library->dlpi_name == nullptr ||
      !std::string_view(library->dlpi_name).ends_with(search.library))
    return 0;
  const ElfW(Dyn)* dynamic = nullptr;
  Range read_only;
  const std::uintptr_t base = library->dlpi_addr;
  for (unsigned i = 0; i < library->dlpi_phnum; ++i) {
    const auto& header = library->dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC) dynamic = at<const ElfW(Dyn)>(base + header.p_vaddr);
    if (header.p_type == PT_GNU_RELRO) {  // the loader protects whole pages only
      const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
      read_only = {base + header.p_vaddr,
                   (base + header.p_vaddr + header.p_memsz) & ~(page_bytes - 1)};
    }
  }
  if (dynamic == nullptr) return 0;
  const Tables tables = read_tables(dynamic);
  if (tables.symbols == nullptr || tables.names == nullptr) return 0;
  search_in(search, base, tables, tables.calls, tables.calls_bytes, read_only);
  if (search.slots.empty())
    search_in(search, base, tables, tables.others, tables.others_bytes, read_only);
  return 1;  // found: no need to look further
}

}  // namespace

std::vector<CallSlot> find_call_slots(std::string_view library, std::string_view symbol) {
  Search search{library, symbol, {}};
  dl_iterate_phdr(&visit, &search);
  return search.slots;
}

bool set_call_slot(const CallSlot& slot, void* function) noexcept {
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* page = at<void>(reinterpret_cast<std::uintptr_t>(slot.entry) & ~(page_bytes - 1));
  if (slot.read_only && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  std::atomic_ref(*slot.entry).store(function, std::memory_order_release);
  if (slot.read_only) mprotect(page, page_bytes, PROT_READ);
  return true;
}

}  // namespace layertrace
