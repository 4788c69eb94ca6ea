// A file that takes its name only when it is whole.
#include "base/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"

namespace layertrace {
namespace {

using test::bytes_of;
using test::FileSizeLimit;
using test::read_file;
using test::TempFolder;
using test::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::size_t kNoLimit = std::size_t{1} << 20;

std::unique_ptr<OutputFile> create(const std::string& path, std::size_t memory_limit = kNoLimit) {
  auto file = OutputFile::create(path, memory_limit);
  EXPECT_TRUE(file) << (file ? "" : file.error().message());
  return std::move(*file);
}

TEST(OutputFile, GrowsBesideItsNameAndTakesItAtCommit) {
  const TempFolder folder;
  const auto file = create(folder.file("run"));
  file->write(bytes_of("one "));
  file->write(bytes_of("two"));
  EXPECT_THAT(folder.list(), ElementsAre("run.part"));
  EXPECT_EQ(read_file(folder.file("run.part")),
            "one two");  // written at once: a kill loses nothing
  EXPECT_EQ(file->size(), 7u);

  ASSERT_TRUE(file->commit());
  EXPECT_THAT(folder.list(), ElementsAre("run"));
  EXPECT_EQ(read_file(folder.file("run")), "one two");
  EXPECT_TRUE(file->commit());  // a second time does nothing
}

TEST(OutputFile, LeavesTheOldTargetAloneUntilCommit) {
  const TempFolder folder;
  write_file(folder.file("run"), "the old one");
  {
    const auto file = create(folder.file("run"));
    file->write(bytes_of("new"));
    EXPECT_EQ(read_file(folder.file("run")), "the old one");
  }
  EXPECT_EQ(read_file(folder.file("run")), "the old one");  // never committed
  const auto file = create(folder.file("run"));
  file->write(bytes_of("newer"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_file(folder.file("run")), "newer");
}

TEST(OutputFile, ReplacesWhatAKilledRunLeftBehind) {
  const TempFolder folder;
  write_file(folder.file("run.part"), "left behind, and longer than the new one");
  const auto file = create(folder.file("run"));
  file->write(bytes_of("new"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_file(folder.file("run")), "new");
}

// ---- Places that cannot be written ----

TEST(OutputFile, SaysThatTheFolderIsMissing) {
  const TempFolder folder;
  const auto file = OutputFile::create(folder.file("missing/run"), kNoLimit);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().tried, HasSubstr("missing/run"));
  EXPECT_THAT(file.error().cause, HasSubstr("No such file or directory"));
  EXPECT_THAT(file.error().remedy, HasSubstr("Create the folder"));
}

TEST(OutputFile, SaysThatTheTargetIsAFolder) {
  const TempFolder folder;
  const auto file = OutputFile::create(folder.path(), kNoLimit);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().cause, HasSubstr("Is a directory"));
  EXPECT_THAT(folder.list(), IsEmpty());
}

TEST(OutputFile, RefusesADevice) {
  const auto file = OutputFile::create("/dev/null", kNoLimit);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().cause, HasSubstr("not a regular file"));
}

TEST(OutputFile, SaysThatItMayNotWriteThere) {
  // Not by permission bits, which do not bind root: the kernel's own file system takes nobody's
  // files (EACCES, or EROFS in a container).
  const auto file = OutputFile::create("/sys/kernel/run.pftrace", kNoLimit);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().remedy, HasSubstr("Choose a path that you may write to"));
}

// ---- A disk that fills up ----

TEST(OutputFile, KeepsInMemoryWhatTheDiskRefuses) {
  const TempFolder folder;
  const auto file = create(folder.file("run"));
  const std::string first(60, 'a');
  const std::string second(60, 'b');
  {
    const FileSizeLimit limit(100);
    file->write(bytes_of(first));
    file->write(bytes_of(second));                         // its first 40 bytes would fit
    EXPECT_EQ(read_file(folder.file("run.part")), first);  // whole blocks only
    EXPECT_EQ(file->size(), 120u);
    EXPECT_EQ(file->lost_blocks(), 0u);

    const auto committed = file->commit();
    ASSERT_FALSE(committed);
    EXPECT_THAT(committed.error().message(), HasSubstr("File too large"));
    EXPECT_THAT(committed.error().remedy, HasSubstr("Free some space"));
    EXPECT_THAT(folder.list(), ElementsAre("run.part"));  // no half file under the final name
    EXPECT_EQ(read_file(folder.file("run.part")), first);
  }
  ASSERT_TRUE(file->commit());  // space again
  EXPECT_EQ(read_file(folder.file("run")), first + second);
}

// Whatever is open as `path` is a full disk from now on, for root too.
void fill_disk_below(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != path) continue;
    const int full = ::open("/dev/full", O_RDWR | O_CLOEXEC);
    ASSERT_GE(::dup2(full, std::stoi(entry.path().filename().string())), 0);
    ::close(full);
    return;
  }
  FAIL() << path << " is not open";
}

TEST(OutputFile, CanBeSavedElsewhereWhenItsOwnDiskIsFull) {
  const TempFolder folder;
  const auto file = create(folder.file("run"));
  fill_disk_below(folder.file("run.part"));
  file->write(bytes_of("one "));
  file->write(bytes_of("two"));
  const auto committed = file->commit();
  ASSERT_FALSE(committed);
  EXPECT_THAT(committed.error().message(), HasSubstr("No space left on device"));

  ASSERT_TRUE(file->copy_to(folder.file("elsewhere")));
  EXPECT_EQ(read_file(folder.file("elsewhere")), "one two");
}

TEST(OutputFile, CanBeSavedToItsOwnNameAfterAFailedCommit) {
  const TempFolder folder;
  const auto file = create(folder.file("run"));
  {
    const FileSizeLimit limit(5);
    file->write(bytes_of("four"));
    file->write(bytes_of(" and more"));
    ASSERT_FALSE(file->commit());
  }
  // The user freed some space and asks for the same place again. The part file there is the data.
  const auto saved = file->copy_to(folder.file("run"));
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_EQ(read_file(folder.file("run")), "four and more");
  EXPECT_THAT(folder.list(), ElementsAre("run"));
  ASSERT_TRUE(file->copy_to(folder.file("again")));
  EXPECT_EQ(read_file(folder.file("again")), "four and more");
}

TEST(OutputFile, LosesNothingSilentlyBeyondItsMemory) {
  const TempFolder folder;
  const auto file = create(folder.file("run"), /*memory_limit=*/10);
  {
    const FileSizeLimit limit(4);
    file->write(bytes_of("disk"));
    file->write(bytes_of("memory"));
    file->write(bytes_of("too much"));
    file->write(bytes_of("fits"));  // would fit, but nothing may follow a hole
  }
  EXPECT_EQ(file->lost_blocks(), 2u);
  const auto committed = file->commit();
  ASSERT_FALSE(committed);
  EXPECT_THAT(committed.error().message(), HasSubstr("the end of the trace is lost"));
  ASSERT_TRUE(file->copy_to(folder.file("rest")));
  EXPECT_EQ(read_file(folder.file("rest")), "diskmemory");
}

TEST(OutputFile, KeepsItsDataWhenItsNameIsTaken) {
  const TempFolder folder;
  const auto file = create(folder.file("run"));
  file->write(bytes_of("data"));
  std::filesystem::create_directory(folder.file("run"));  // since the start
  ASSERT_FALSE(file->commit());
  EXPECT_EQ(read_file(folder.file("run.part")), "data");
  ASSERT_TRUE(file->copy_to(folder.file("other")));
  EXPECT_EQ(read_file(folder.file("other")), "data");
}

// ---- Copies ----

TEST(OutputFile, CopiesWholeOrNotAtAll) {
  const TempFolder folder;
  write_file(folder.file("copy"), "the old copy");
  const auto file = create(folder.file("run"));
  const std::string large(3'000'000, 'x');  // more than one read
  file->write(bytes_of(large));
  ASSERT_TRUE(file->commit());
  {
    const FileSizeLimit limit(2'000'000);
    const auto copied = file->copy_to(folder.file("copy"));
    ASSERT_FALSE(copied);
    EXPECT_THAT(copied.error().tried, HasSubstr(folder.file("copy")));
  }
  EXPECT_EQ(read_file(folder.file("copy")), "the old copy");
  EXPECT_THAT(folder.list(), ElementsAre("copy", "run"));  // and no part file

  ASSERT_TRUE(file->copy_to(folder.file("copy")));
  EXPECT_EQ(read_file(folder.file("copy")), large);
}

TEST(OutputFile, CopiesOntoItself) {
  const TempFolder folder;
  const auto file = create(folder.file("run"));
  file->write(bytes_of("data"));
  ASSERT_TRUE(file->commit());
  ASSERT_TRUE(file->copy_to(folder.file("run")));
  EXPECT_EQ(read_file(folder.file("run")), "data");
  EXPECT_THAT(folder.list(), ElementsAre("run"));
}

TEST(OutputFile, RefusesToCopyToAFolderOrAMissingOne) {
  const TempFolder folder;
  const auto file = create(folder.file("run"));
  file->write(bytes_of("data"));
  ASSERT_TRUE(file->commit());
  EXPECT_FALSE(file->copy_to(folder.path()));
  EXPECT_FALSE(file->copy_to(folder.file("missing/copy")));
  EXPECT_FALSE(file->copy_to(""));  // a copy without a name would be lost at once
  EXPECT_THAT(folder.list(), ElementsAre("run"));
}

TEST(OutputFile, RefusesAPlaceThatAnotherIsWritingTo) {
  const TempFolder folder;
  auto file = create(folder.file("run"));
  file->write(bytes_of("the first one's"));
  const auto second = OutputFile::create(folder.file("run"), kNoLimit);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("another recording"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_file(folder.file("run")), "the first one's");
  const auto after = create(folder.file("run"));  // its own name is free again
  after->write(bytes_of("the next"));
  ASSERT_TRUE(after->commit());
}

TEST(OutputFile, ARecordingOfNothingLeavesAnEarlierFileAlone) {
  const TempFolder folder;
  EXPECT_FALSE(create(folder.file("new"))->leave_existing());  // there is none
  const auto earlier = create(folder.file("run"));
  earlier->write(bytes_of("good"));
  ASSERT_TRUE(earlier->commit());
  const auto file = create(folder.file("run"));
  file->write(bytes_of("empty"));
  ASSERT_TRUE(file->leave_existing());
  EXPECT_EQ(read_file(folder.file("run")), "good");
  ASSERT_TRUE(file->copy_to(folder.file("copy")));
  EXPECT_EQ(read_file(folder.file("copy")), "empty");
  EXPECT_THAT(folder.list(), UnorderedElementsAre("run", "copy", "new.part"));
}

// ---- Without a name ----

class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (before_.empty()) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, before_.c_str(), 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::string before_;
};

TEST(OutputFile, WithoutANameLeavesNothingBehind) {
  const TempFolder folder;
  const TempFolder temporary;
  const Environment environment("TMPDIR", temporary.path());
  {
    const auto file = create("");
    file->write(bytes_of("data"));
    ASSERT_TRUE(file->commit());
    EXPECT_THAT(temporary.list(), IsEmpty());
    ASSERT_TRUE(file->copy_to(folder.file("kept")));
  }
  EXPECT_THAT(temporary.list(), IsEmpty());
  EXPECT_EQ(read_file(folder.file("kept")), "data");
}

TEST(OutputFile, WithoutANameSaysThatThereIsNoPlaceForIt) {
  const TempFolder folder;
  const Environment environment("TMPDIR", folder.file("missing"));
  const auto file = OutputFile::create("", kNoLimit);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message(), HasSubstr("temporary file"));
}

TEST(OutputFile, DiscardedLeavesNothingBehind) {
  const TempFolder folder;
  write_file(folder.file("run"), "the old one");
  const auto file = create(folder.file("run"));
  file->write(bytes_of("data"));
  file->discard();
  EXPECT_FALSE(file->commit());
  EXPECT_THAT(folder.list(), ElementsAre("run"));
  EXPECT_EQ(read_file(folder.file("run")), "the old one");
}

TEST(OutputFile, AbandonedIsNobodysToCommit) {
  const TempFolder folder;
  const auto file = create(folder.file("run"));
  file->write(bytes_of("the parent's"));
  file->abandon();  // as in a forked child
  file->write(bytes_of("the child's"));
  EXPECT_FALSE(file->commit());
  EXPECT_THAT(folder.list(), ElementsAre("run.part"));
  EXPECT_EQ(read_file(folder.file("run.part")), "the parent's");
}

TEST(OutputFile, BringsCopiesUpToDateThatAreAsTheyWereLeft) {
  const TempFolder folder;
  for (const std::string& path : {std::string(), folder.file("run")}) {
    const auto file = create(path);
    file->write(bytes_of("one"));
    ASSERT_TRUE(file->commit());
    for (const char* name : {"kept", "changed", "moved", "replaced"})
      ASSERT_TRUE(file->copy_to(folder.file(name)));
    write_file(folder.file("changed"), "other than it was");
    std::filesystem::rename(folder.file("moved"), folder.file("elsewhere"));
    std::filesystem::remove(folder.file("replaced"));
    write_file(folder.file("replaced"), "two");
    for (const char* more : {" two", " three"}) {
      file->write(bytes_of(more));
      ASSERT_TRUE(file->commit());
      ASSERT_TRUE(file->update_copies());
    }
    EXPECT_EQ(read_file(folder.file("kept")), "one two three");
    EXPECT_EQ(read_file(folder.file("changed")), "other than it was");
    EXPECT_EQ(read_file(folder.file("elsewhere")), "one");
    EXPECT_EQ(read_file(folder.file("replaced")), "two");
    EXPECT_FALSE(std::filesystem::exists(folder.file("moved")));
  }
}

TEST(OutputFile, UpdatesACopyThatTookItsOwnName) {
  const TempFolder folder;
  const auto file = create(folder.file("run"));
  file->write(bytes_of("one"));
  ASSERT_TRUE(file->commit());
  ASSERT_TRUE(file->copy_to(folder.file("run")));
  file->write(bytes_of(" two"));
  ASSERT_TRUE(file->commit());
  ASSERT_TRUE(file->update_copies());
  EXPECT_EQ(read_file(folder.file("run")), "one two");
}

}  // namespace
}  // namespace layertrace
