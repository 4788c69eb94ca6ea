// Descriptions of cuBLASLt: lists of attributes, which programs set one by one. A description lies
// in the bytes that the program, or the library for it, sets aside.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <span>

namespace simgpu {

// One attribute of a description. Their values lie one behind the other, in the order of the table.
struct Attribute {
  int id;
  std::size_t bytes;
  std::int64_t initial = 0;
};
using Attributes = std::span<const Attribute>;

extern const Attributes kLayout;
extern const Attributes kMatmul;
extern const Attributes kPreference;
extern const Attributes kAlgorithm;

// As the functions of cuBLASLt that are called so: the size must be the attribute's. Asked with 0
// bytes, `get` tells how many there are.
cublasStatus_t set(Attributes attributes, void* description, int id, const void* from,
                   std::size_t bytes);
cublasStatus_t get(Attributes attributes, const void* description, int id, void* to,
                   std::size_t bytes, std::size_t* written);

// An attribute that there is, and that is a number.
std::int64_t number(Attributes attributes, const void* description, int id);
void set_number(Attributes attributes, void* description, int id, std::int64_t number);

// All that it has at first.
void set_initial(Attributes attributes, void* description);

}  // namespace simgpu
