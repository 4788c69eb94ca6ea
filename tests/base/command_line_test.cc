#include "base/command_line.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace layertrace {
namespace {

TEST(CommandLine, IsThatOfThisProcess) {
  std::ifstream name("/proc/self/comm");
  std::string comm;
  std::getline(name, comm);
  const std::vector<std::string> words = command_words();
  ASSERT_FALSE(words.empty());
  EXPECT_NE(words.front().find(comm), std::string::npos) << words.front();
}

TEST(CommandLine, IsShownAsAShellTakesIt) {
  EXPECT_EQ(shown_command({"python", "train.py", "--lr=1e-3", "a b", "it's", ""}),
            R"(python train.py --lr=1e-3 'a b' 'it'\''s' '')");
  EXPECT_EQ(shown_command({}), "");
}

TEST(CommandLine, KeepsSecretsToItself) {
  const std::vector<std::string> words = {"train",
                                          "--api-key",
                                          "one",
                                          "--password=two",
                                          "wandb.api_key=three",
                                          "HF_TOKEN=four",
                                          "--aws-secret-access-key",
                                          "five",
                                          "https://me:six@host/path",
                                          "--resume=https://seven@host/x?a=b",
                                          "hf_eightEightEightEight",
                                          "--key=sk-nineNineNineNineNine"};
  const std::string shown = shown_command(words);
  for (const char* secret :
       {"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"})
    EXPECT_EQ(shown.find(secret), std::string::npos) << secret << " in " << shown;
  EXPECT_EQ(shown,
            "train --api-key *** --password=*** wandb.api_key=*** HF_TOKEN=*** "
            "--aws-secret-access-key *** https://***@host/path '--resume=https://***@host/x?a=b' "
            "*** --key=***");
}

TEST(CommandLine, LeavesWhatOnlyLooksLikeASecret) {
  const std::vector<std::string> words = {"train",       "--tokenizer", "gpt2",   "--max-tokens",
                                          "512",         "--token",     "--fast", "--author=me",
                                          "s3://b/x@y/", "sk-short"};
  EXPECT_EQ(shown_command(words),
            "train --tokenizer gpt2 --max-tokens 512 --token --fast --author=me s3://b/x@y/ "
            "sk-short");
}

}  // namespace
}  // namespace layertrace
