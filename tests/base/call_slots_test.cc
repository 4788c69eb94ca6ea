#include "base/call_slots.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

namespace layertrace {
namespace {

// libstdc++'s operator new calls malloc through its own table; sanitizers bring their own operator.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
int allocations = 0;

void* counting_malloc(std::size_t bytes) {
  ++allocations;
  return std::malloc(bytes);
}

TEST(CallSlots, LeadALibrarysCallsElsewhereAndBack) {
  const auto slots = find_call_slots("/libstdc++.so.6", "malloc");
  ASSERT_FALSE(slots.empty());
  for (const CallSlot& slot : slots)
    ASSERT_TRUE(set_call_slot(slot, reinterpret_cast<void*>(&counting_malloc)));
  allocations = 0;
  ::operator delete(::operator new(100));
  EXPECT_EQ(allocations, 1);
  for (const CallSlot& slot : slots) ASSERT_TRUE(set_call_slot(slot, slot.original));
  ::operator delete(::operator new(100));
  EXPECT_EQ(allocations, 1);
}
#endif

TEST(CallSlots, AreNoneWhereNothingIsCalled) {
  EXPECT_TRUE(find_call_slots("/libstdc++.so.6", "no_such_function").empty());
  EXPECT_TRUE(find_call_slots("/libnone.so", "malloc").empty());
}

}  // namespace
}  // namespace layertrace
