#include <cstddef>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  layertrace::fuzz::import_bytes({data, size});
  return 0;
}
