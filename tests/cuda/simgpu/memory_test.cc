#include "core/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace simgpu {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

bool all_zero(const void* address, std::size_t bytes) {
  const auto* first = static_cast<const unsigned char*>(address);
  return std::all_of(first, first + bytes, [](unsigned char c) { return c == 0; });
}

TEST(Memory, IsZerosAndAligned) {
  Memory memory(1, kGiB);
  void* address = memory.allocate(MemoryKind::kDevice, 0, 1000);
  ASSERT_NE(address, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 512, 0u);
  EXPECT_TRUE(all_zero(address, 1000));
  EXPECT_EQ(memory.used_bytes(0), 1024u);
  EXPECT_TRUE(memory.free(address));
  EXPECT_EQ(memory.used_bytes(0), 0u);
}

TEST(Memory, OfABigDeviceIsNotTakenFromTheHost) {
  Memory memory(1, 80 * kGiB);
  void* address = memory.allocate(MemoryKind::kDevice, 0, 70 * kGiB);
  ASSERT_NE(address, nullptr);
  static_cast<char*>(address)[69 * kGiB] = 1;
  EXPECT_EQ(memory.used_bytes(0), 70 * kGiB);
}

TEST(Memory, EndsWhereTheDevicesEnds) {
  Memory memory(2, kGiB);
  void* most = memory.allocate(MemoryKind::kDevice, 0, kGiB - 512);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(memory.allocate(MemoryKind::kDevice, 0, 513), nullptr);
  EXPECT_EQ(memory.allocate(MemoryKind::kManaged, 0, 1024), nullptr);
  EXPECT_NE(memory.allocate(MemoryKind::kDevice, 0, 512), nullptr);
  EXPECT_NE(memory.allocate(MemoryKind::kDevice, 1, kGiB), nullptr);  // another device's
  EXPECT_NE(memory.allocate(MemoryKind::kHost, 0, 4096), nullptr);    // the host's
  EXPECT_EQ(memory.allocate(MemoryKind::kDevice, 1, ~std::size_t{0}), nullptr);
  EXPECT_TRUE(memory.free(most));
  EXPECT_NE(memory.allocate(MemoryKind::kDevice, 0, kGiB - 512), nullptr);
}

TEST(Memory, KnowsTheAllocationAroundAnAddress) {
  Memory memory(2, kGiB);
  auto* device = static_cast<std::byte*>(memory.allocate(MemoryKind::kDevice, 1, 5000));
  auto* host = static_cast<std::byte*>(memory.allocate(MemoryKind::kHost, 0, 5000));
  const auto inside = memory.find(device + 4999);
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->base, device);
  EXPECT_EQ(inside->kind, MemoryKind::kDevice);
  EXPECT_EQ(inside->device, 1);
  EXPECT_EQ(memory.find(host + 1)->kind, MemoryKind::kHost);
  EXPECT_FALSE(memory.find(device - 1) && memory.find(device - 1)->base == device);
  int on_the_stack = 0;
  EXPECT_FALSE(memory.find(&on_the_stack));
  EXPECT_FALSE(memory.find(nullptr));
}

TEST(Memory, FreesOnlyWhatItGave) {
  Memory memory(1, kGiB);
  auto* address = static_cast<std::byte*>(memory.allocate(MemoryKind::kDevice, 0, 4096));
  EXPECT_FALSE(memory.free(address + 512));
  EXPECT_FALSE(memory.free(nullptr));
  EXPECT_TRUE(memory.free(address));
  EXPECT_FALSE(memory.free(address));
}

TEST(Memory, OfTheProgramIsKnownWhileItIsRegistered) {
  Memory memory(1, kGiB);
  std::array<char, 4096> own{};
  EXPECT_TRUE(memory.add_registered(own.data(), own.size(), 0));
  EXPECT_FALSE(memory.add_registered(own.data() + 1, 1, 0));
  EXPECT_EQ(memory.find(own.data() + 4095)->kind, MemoryKind::kHost);
  EXPECT_FALSE(memory.free(own.data()));
  EXPECT_TRUE(memory.remove_registered(own.data()));
  EXPECT_FALSE(memory.remove_registered(own.data()));
  EXPECT_FALSE(memory.find(own.data()));
}

TEST(Fill, SetsEveryByteAndNoOther) {
  Memory memory(1, kGiB);
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  auto* address = static_cast<unsigned char*>(memory.allocate(MemoryKind::kDevice, 0, kBytes));
  for (const std::size_t offset : {0u, 1u, 4095u, 4096u}) {
    std::memset(address, 7, kBytes);
    fill(address + offset, 0, kBytes - offset - 3);
    EXPECT_TRUE(std::all_of(address, address + offset, [](auto c) { return c == 7; }));
    EXPECT_TRUE(all_zero(address + offset, kBytes - offset - 3));
    EXPECT_TRUE(std::all_of(address + kBytes - 3, address + kBytes, [](auto c) { return c == 7; }));
  }
  fill(address, 0x1ff, kBytes);  // the lowest byte counts
  EXPECT_TRUE(std::all_of(address, address + kBytes, [](auto c) { return c == 0xff; }));
  fill(address, 0x100, kBytes);
  EXPECT_TRUE(all_zero(address, kBytes));
}

}  // namespace
}  // namespace simgpu
