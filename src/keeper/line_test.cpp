#include "line.hpp"

#include <gtest/gtest.h>

namespace weir::keeper {
namespace {

using What = Ask::What;

TEST(KeeperLine, SaysWhatItAsksFor) {
  EXPECT_EQ(read_ask("{}").what, What::state);
  EXPECT_EQ(read_ask(" { } ").what, What::state);
  EXPECT_EQ(read_ask(R"({"order":"stop"})").what, What::stop);
  EXPECT_EQ(read_ask(R"({"order": "kill"})").what, What::kill);
  Ask extension = read_ask(R"({"version":1099511627780, "valid_until_us":812345678901,"by":"weir","n":1})");
  EXPECT_EQ(extension.what, What::extend);
  EXPECT_EQ(extension.version, 1099511627780);
  EXPECT_EQ(extension.valid_until, Micros(812345678901));
}

TEST(KeeperLine, AnythingElse_IsNonsense) {
  for (const char* line :
       {"", "{", "}", "[]", "{}}", "{} {}", "nonsense", R"({"order":"dance"})", R"({"order":1})", R"({"order":""})",
        R"({"version":1})", R"({"valid_until_us":1})", R"({"version":"1","valid_until_us":1})",
        R"({"version":-1,"valid_until_us":1})", R"({"version":1.5,"valid_until_us":1})",
        R"({"version":1e3,"valid_until_us":1})", R"({"version":1,"valid_until_us":1)", R"({"version":1,})",
        R"({"version":1000000000000000000000,"valid_until_us":1})", R"({"ord\u0065r":"kill"})", R"({"order":"kill)",
        R"({"version":,"valid_until_us":1})", R"({"by":null})", R"({"by":{}})"})
    EXPECT_EQ(read_ask(line).what, What::nonsense) << line;
  EXPECT_EQ(read_ask(std::string_view("{}\0", 3)).what, What::nonsense);
}

// Whatever a line is cut down to, it is read to its end and no further.
TEST(KeeperLine, EveryBeginningOfALine_IsReadWithoutHarm) {
  std::string line = R"({"version":1099511627780,"valid_until_us":812345678901})";
  for (size_t size = 0; size < line.size(); ++size) {
    std::string cut = line.substr(0, size);
    EXPECT_EQ(read_ask(cut).what, What::nonsense) << cut;
  }
}

TEST(KeeperTask, IsReadFromArguments) {
  std::vector<std::string> words{"weir-keeper", "demo.worker", "--folder=/tmp/x", "--nonce=ab", "--version=7",
                                 "--until-us=9", "--stop-grace-ms=10", "--backstop-ms=0", "--", "/bin/true", "--x"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  auto task = read_task(static_cast<int>(words.size()), argv.data());
  ASSERT_TRUE(task);
  EXPECT_STREQ(task->folder, "/tmp/x");
  EXPECT_EQ(task->version, 7);
  EXPECT_EQ(task->stop_grace, std::chrono::milliseconds(10));
  EXPECT_STREQ(task->command[1], "--x");
  EXPECT_EQ(task->command[2], nullptr);
  words[4] = "--version=x";
  argv[4] = words[4].data();
  EXPECT_FALSE(read_task(static_cast<int>(words.size()), argv.data()));
  EXPECT_FALSE(read_task(1, argv.data()));
}

}  // namespace
}  // namespace weir::keeper
