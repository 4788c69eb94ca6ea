#include "base/git_commit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/files.h"

namespace layertrace {
namespace {

namespace fs = std::filesystem;

class GitCommit : public ::testing::Test {
 protected:
  // With settings of its own, whatever the user's are.
  void git(const std::string& arguments, const std::string& where = "repository") {
    const std::string command =
        "cd '" + folder_.path() + "' && mkdir -p '" + where + "' && cd '" + where +
        "' && GIT_CONFIG_GLOBAL=/dev/null git -c user.name=n -c user.email=e@x "
        "-c init.defaultBranch=main " +
        arguments + " > '" + folder_.file("said") + "' 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  std::string said() const {
    std::ifstream in(folder_.file("said"));
    std::string line;
    std::getline(in, line);
    return line;
  }
  void commit(const std::string& message) { git("commit -q --allow-empty -m " + message); }
  void SetUp() override {
    git("init -q .");
    commit("one");
  }

  test::TempFolder folder_;
};

TEST_F(GitCommit, IsThatOfTheBranch) {
  git("rev-parse HEAD");
  EXPECT_EQ(git_commit(folder_.file("repository")), said());
  commit("two");
  git("rev-parse HEAD");
  EXPECT_EQ(git_commit(folder_.file("repository")), said());
}

TEST_F(GitCommit, IsFoundFromAFolderInside) {
  fs::create_directories(folder_.file("repository/a/b"));
  git("rev-parse HEAD");
  EXPECT_EQ(git_commit(folder_.file("repository/a/b")), said());
}

TEST_F(GitCommit, IsFoundWhereBranchesArePacked) {
  git("pack-refs --all");
  ASSERT_FALSE(fs::exists(folder_.file("repository/.git/refs/heads/main")));
  git("rev-parse HEAD");
  EXPECT_EQ(git_commit(folder_.file("repository")), said());
}

TEST_F(GitCommit, IsFoundWithoutABranch) {
  git("checkout -q --detach");
  git("rev-parse HEAD");
  EXPECT_EQ(git_commit(folder_.file("repository")), said());
}

TEST_F(GitCommit, IsFoundInASecondWorkTree) {
  git("worktree add -q -b other ../tree");
  git("commit -q --allow-empty -m three", "tree");
  git("rev-parse HEAD", "tree");
  const std::string others = said();
  EXPECT_EQ(git_commit(folder_.file("tree")), others);
  git("rev-parse HEAD");
  EXPECT_NE(said(), others);
  EXPECT_EQ(git_commit(folder_.file("repository")), said());
}

TEST_F(GitCommit, IsNoneOutsideOfARepositoryOrBeforeTheFirst) {
  EXPECT_EQ(git_commit(folder_.path()), "");
  git("init -q .", "empty");
  EXPECT_EQ(git_commit(folder_.file("empty")), "");
  EXPECT_EQ(git_commit(folder_.file("missing")), "");
}

}  // namespace
}  // namespace layertrace
