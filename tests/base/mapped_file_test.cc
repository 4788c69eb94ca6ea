#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "base/files.h"

namespace layertrace {
namespace {

using test::TempFolder;
using test::write_file;
using ::testing::HasSubstr;

std::string text_of(const MappedFile& file) { return {file.bytes().begin(), file.bytes().end()}; }

TEST(MappedFile, HoldsTheFilesBytes) {
  const TempFolder folder;
  const std::string text("a\0b\xff", 4);
  write_file(folder.file("x"), text);
  auto file = MappedFile::open(folder.file("x"));
  ASSERT_TRUE(file);
  EXPECT_EQ(text_of(*file), text);
  const MappedFile moved = std::move(*file);
  EXPECT_EQ(text_of(moved), text);
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, MayBeEmpty) {
  const TempFolder folder;
  write_file(folder.file("x"), "");
  const auto file = MappedFile::open(folder.file("x"));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, SaysWhatIsWrongWithThePath) {
  const TempFolder folder;
  const auto missing = MappedFile::open(folder.file("missing"));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), HasSubstr("No such file"));
  const auto directory = MappedFile::open(folder.path());
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message(), HasSubstr("it is a folder"));
  EXPECT_FALSE(MappedFile::open(""));
}

TEST(MappedFile, DoesNotWaitForThePeerOfAPipe) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  const auto pipe = MappedFile::open(folder.file("pipe"));  // would hang for want of a writer
  ASSERT_FALSE(pipe);
  EXPECT_THAT(pipe.error().message(), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace layertrace
