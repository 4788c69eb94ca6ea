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

TEST(CommandLine, KeepsKeysOfAnyServiceToItself) {
  EXPECT_EQ(shown_command({"train", "--wandb-key", "a1", "--openai-key", "b2", "--comet_key=c3",
                           "WANDB_KEY=d4", "+logger.key=e5", "--wandbKey", "f6", "--authToken=g7"}),
            "train --wandb-key *** --openai-key *** --comet_key=*** WANDB_KEY=*** +logger.key=*** "
            "--wandbKey *** --authToken=***");
}

TEST(CommandLine, KeepsSecretsOfUrlsToItself) {
  const auto shown = [](const std::string& word) { return shown_command({word}); };
  EXPECT_EQ(shown("https://h/x?token=one"), "'https://h/x?token=***'");
  EXPECT_EQ(shown("https://h/x?a=1&sig=two%3D&b=3"), "'https://h/x?a=1&sig=***&b=3'");
  EXPECT_EQ(shown("--data=https://b.s3.amazonaws.com/k?X-Amz-Credential=AK%2F1&X-Amz-Date=2&"
                  "X-Amz-Signature=three"),
            "'--data=https://b.s3.amazonaws.com/k?X-Amz-Credential=***&X-Amz-Date=2&"
            "X-Amz-Signature=***'");
  EXPECT_EQ(shown("https://h/v1?key=AIzaFour&n=5"), "'https://h/v1?key=***&n=5'");
  EXPECT_EQ(shown("https://h/#access_token=five"), "'https://h/#access_token=***'");
  EXPECT_EQ(shown("postgres://user:pass@word@host:5432/db"), "postgres://***@host:5432/db");
  EXPECT_EQ(shown("redis://:six@host"), "redis://***@host");
  EXPECT_EQ(shown("postgres://u:p#ss@host/db"), "postgres://***@host/db");
  EXPECT_EQ(shown("postgres://u:p?ss@host/db"), "postgres://***@host/db");
  EXPECT_EQ(shown("postgres://u:pa'ss@host/db"), "postgres://***@host/db");
  EXPECT_EQ(shown("https://host?mail=a@b"), "'https://host?mail=a@b'");
  EXPECT_EQ(shown("--passWord=six"), "--passWord=***");
  EXPECT_EQ(shown("--urls=a://u:p@h/x,b://v:q@i/y"), "--urls=a://***@h/x,b://***@i/y");
  EXPECT_EQ(shown("https://h/?next=https://u:p@i/?token=seven"),
            "'https://h/?next=https://***@i/?token=***'");
}

TEST(CommandLine, LeavesOrdinaryNamesAndUrls) {
  const std::vector<std::string> words = {"train",      "--tokenizer-path", "a",     "--keys",
                                          "b",          "--monkey",         "c",     "--sort-key",
                                          "d",          "--key-dim=4",      "--key", "e",
                                          "--hotkey=f", "--tokens-per-s",   "9"};
  EXPECT_EQ(shown_command(words),
            "train --tokenizer-path a --keys b --monkey c --sort-key d --key-dim=4 --key e "
            "--hotkey=f --tokens-per-s 9");
  EXPECT_EQ(shown_command({"https://h:80/a@b?design=x&keys=2&tokenizer=gpt2"}),
            "'https://h:80/a@b?design=x&keys=2&tokenizer=gpt2'");
}

}  // namespace
}  // namespace layertrace
