// Files that are broken, hostile, or something else.
#include <gtest/gtest.h>

#include <limits>

#include "kineto/made_up_trace.h"

namespace layertrace::kineto {
namespace {

MadeUpTrace ten_operators() {
  MadeUpTrace trace;
  for (int i = 0; i < 10; ++i) trace.x("cpu_op", "aten::add", 100 + 10 * i, 5);
  return trace;
}

TEST(BadInput, CutOffGivesWhatIsWhole) {
  const std::string whole = ten_operators().json();
  const std::string cut = whole.substr(0, whole.size() - 20);
  const auto profile = MadeUpTrace::import_bytes(cut);
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->health.source.events, 9U);
  ASSERT_FALSE(profile->health.notes.empty());
  const std::size_t lost = cut.size() - cut.rfind("{\"ph\"");
  EXPECT_NE(profile->health.notes[0].find("its last " + std::to_string(lost) + " bytes"),
            std::string::npos)
      << profile->health.notes[0];
}

TEST(BadInput, CutAnywhereNeverFailsBadly) {
  const std::string whole = ten_operators().json();
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    const auto profile = MadeUpTrace::import_bytes(whole.substr(0, size));
    EXPECT_TRUE(!profile || profile->health.source.events >= 1);
  }
}

TEST(BadInput, WithAQuoteInANameLosesThatEventOnly) {
  const auto profile = MadeUpTrace()
                           .x("cpu_op", "aten::add", 100, 5)
                           .x("cpu_op", "a\"b", 110, 5, R"("x": {"y": 1})")
                           .x("cpu_op", "aten::mul", 120, 5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->health.source.events, 2U);
  EXPECT_NE(profile->health.notes.at(0).find("in 1 place made no sense"), std::string::npos);
}

TEST(BadInput, WithDeepBracketsInWhatItSaysOfDevicesIsRead) {
  constexpr std::size_t kDeep = std::size_t{4} << 20;
  const std::string devices(kDeep, '[');
  const auto profile =
      MadeUpTrace(R"("schemaVersion": 1, "deviceProperties": )" + devices + std::string(kDeep, ']'))
          .x("cpu_op", "aten::add", 100, 5)
          .import();
  ASSERT_TRUE(profile) << profile.error().message();
  EXPECT_EQ(profile->health.source.events, 1U);
}

// A frame of blocks that are stored as they are, which needs no library to write.
std::string as_zstd(const std::string& text) {
  const auto little_endian = [](std::uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
    return out;
  };
  std::string packed = little_endian(0xfd2fb528, 4) + '\xa0' + little_endian(text.size(), 4);
  constexpr std::size_t kBlock = 100;
  for (std::size_t at = 0; at < text.size(); at += kBlock) {
    const std::string block = text.substr(at, kBlock);
    const std::uint64_t is_last = at + kBlock >= text.size() ? 1 : 0;
    packed += little_endian(block.size() << 3 | is_last, 3) + block;
  }
  return packed;
}

TEST(Zstd, IsReadAndMayBeCut) {
  const std::string packed = as_zstd(ten_operators().json());
  const auto profile = MadeUpTrace::import_bytes(packed, "", "trace.json.zst");
  if (!profile && profile.error().message().find("zstd") != std::string::npos)
    GTEST_SKIP() << profile.error().message();
  ASSERT_TRUE(profile) << profile.error().message();
  EXPECT_EQ(profile->health.source.events, 10U);
  EXPECT_TRUE(profile->health.notes.empty() ||
              profile->health.notes[0].find("not whole") == std::string::npos);

  const auto cut = MadeUpTrace::import_bytes(packed.substr(0, packed.size() - 150));
  ASSERT_TRUE(cut) << cut.error().message();
  EXPECT_LT(cut->health.source.events, 10U);
  EXPECT_GE(cut->health.source.events, 7U);
  EXPECT_NE(cut->health.notes.at(0).find("the source is"), std::string::npos);
}

TEST(BadInput, IsRefusedWithTheReason) {
  const auto refused = [](std::string_view bytes) {
    const auto profile = MadeUpTrace::import_bytes(bytes, "refused.pftrace");
    EXPECT_FALSE(profile) << bytes;
    EXPECT_FALSE(std::filesystem::exists("refused.pftrace"));
    EXPECT_FALSE(std::filesystem::exists("refused.pftrace.part"));
    return profile ? "" : profile.error().message();
  };
  EXPECT_NE(refused("").find("it is empty"), std::string::npos);
  EXPECT_NE(refused("hello").find("it is not JSON"), std::string::npos);
  EXPECT_NE(refused(R"({"a": [1, 2]})").find("it has no traceEvents"), std::string::npos);
  EXPECT_NE(refused(R"({"a": )").find("cut off before its first event"), std::string::npos);
  EXPECT_NE(refused(R"({"traceEvents": []})").find("no event"), std::string::npos);
  EXPECT_NE(refused("[1, 2, 3]").find("no event"), std::string::npos);
  EXPECT_NE(refused(std::string_view("\x1f\x8b\x08\0garbage", 11)).find("cannot import"),
            std::string::npos);
  EXPECT_FALSE(import_trace("no/such/file.json"));
  EXPECT_FALSE(import_trace("."));
}

TEST(BadInput, WithSenselessTimesIsRejectedByCause) {
  const auto kernel = [](const std::string& times) {
    return R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, )" + times +
           R"(, "args": {"correlation": 1, "device": 0, "stream": 7}})";
  };
  const auto profile = MadeUpTrace()
                           .add(kernel(R"("ts": 10, "dur": 5)"))
                           .add(kernel(R"("ts": NaN, "dur": 5)"))
                           .add(kernel(R"("ts": 10, "dur": "nan")"))
                           .add(kernel(R"("ts": 10, "dur": -1)"))
                           .add(kernel(R"("ts": 10)"))
                           .add(kernel(R"("ts": 10, "dur": 1e300)"))
                           .add(kernel(R"("ts": 99999999999999999999999, "dur": 1)"))
                           .import("rejected.pftrace");
  ASSERT_TRUE(profile);
  for (const auto& health : {profile->health, load("rejected.pftrace")->health}) {
    EXPECT_EQ(health.activities, 7U);
    EXPECT_EQ(health.activity_ns, 5000U);
    EXPECT_EQ(count_of(health.rejected, "a time that is no number"), 2U);
    EXPECT_EQ(count_of(health.rejected, "negative duration"), 1U);
    EXPECT_EQ(count_of(health.rejected, "without a start or a duration"), 1U);
    EXPECT_EQ(count_of(health.rejected, "a time out of range"), 2U);
  }
}

TEST(BadInput, ExtremeTimesDoNotOverflow) {
  const auto profile = MadeUpTrace(R"("baseTimeNanoseconds": 9223372036854775807)")
                           .x("cpu_op", "a", 3.9e15, 4e14)
                           .x("cpu_op", "b", -3.9e15, 1)
                           .import("extreme.pftrace");
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->health.activities, 2U);
}

TEST(BadInput, DeepNestingIsPassedOver) {
  const std::size_t depth = 3'000'000;
  const auto profile =
      MadeUpTrace()
          .x("cpu_op", "a", 1, 1, R"("x": )" + std::string(depth, '[') + std::string(depth, ']'))
          .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->health.activities, 1U);
}

TEST(BadInput, ModulesNestedVeryDeeplyStayWithinMemory) {
  MadeUpTrace trace;
  for (int i = 0; i < 2000; ++i) trace.module("M_" + std::to_string(i), i, 4000 - 2 * i);
  const auto profile = trace.import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->layers.size(), 2000U);
}

TEST(BadInput, OperatorsOfVeryManyNamesShareALayer) {
  MadeUpTrace trace;
  constexpr int kNames = 5000;
  for (int i = 0; i < kNames; ++i)
    trace.x("cpu_op", "made_up::" + std::to_string(i), 100 + 10 * i, 5);
  const auto profile = trace.import();
  ASSERT_TRUE(profile);
  EXPECT_LT(profile->layers.size(), 2100U);
  EXPECT_EQ(profile->health.activities, kNames);
  EXPECT_EQ(activities(*profile, "forward", Phase::kForward), kNames);
  EXPECT_GT(activities(*profile, "forward.(others)", Phase::kForward), 2900);
}

TEST(BadInput, ModulesThatCallEachOtherMakeNoCircle) {
  const auto profile = MadeUpTrace()
                           .module("A_0", 100, 100)
                           .module("B_0", 110, 50)
                           .module("A_0", 120, 20)
                           .module("B_0", 300, 100)
                           .module("A_0", 310, 50)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->layers.size(), 2U);
  EXPECT_NE(profile->find("A_0.B_0"), nullptr);
}

// Names as they are, through the trace and back.
TEST(BadInput, HostileNamesAreKeptByteForByte) {
  const std::string name = std::string("k\xff\xfe \"<script>\n\0é", 17);
  const auto profile =
      MadeUpTrace()
          .add(
              "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\xff\xfe "
              "\\\"<script>\\n\\u0000é\", "
              "\"pid\": 0, \"tid\": 7, \"ts\": 1, \"dur\": 1, \"args\": {\"correlation\": 1}}")
          .import("hostile.pftrace");
  ASSERT_TRUE(profile);
  const auto loaded = load("hostile.pftrace");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(profile->kernels.at(0).name, name);
  EXPECT_EQ(loaded->kernels.at(0).name, name);
}

TEST(BadInput, AnOutputThatCannotBeWrittenIsSaidAtOnce) {
  EXPECT_FALSE(ten_operators().import("no/such/folder/run.pftrace"));
}

}  // namespace
}  // namespace layertrace::kineto
