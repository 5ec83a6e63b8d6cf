// A person's shell: `weir` run as a command, beside a `weir up` of the test's own, in a folder of its own.
// Main thread only.
#pragma once

#include "shard.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <csignal>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace weir::test {

inline std::string file_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Ran {
  int code;
  std::string out, err;
  json::value parsed() const {
    auto value = json::parse_text(out);
    EXPECT_TRUE(value) << out;
    return value ? *value : json::value();
  }
};

inline std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Runs `weir` with these words in `folder`, without what the environment of the test may say.
inline Ran weir(const TempDir& folder, const std::vector<std::string>& words, const std::string& environment = "") {
  std::string out = folder.path() + "/out", err = folder.path() + "/err";
  std::string command = fmt::format("cd {} && env -u WEIR_URL -u WEIR_TOKEN -u API_KEY -u STATE_DIR -u CONTROL_PLANE_URL {} '{}'",
                                    folder.path(), environment, WEIR_BINARY);
  for (const std::string& word : words) command += " " + shell_word(word);
  int status = std::system(fmt::format("{} >{} 2>{} </dev/null", command, out, err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, file_text(out), file_text(err)};
}

// As in another terminal: what is run next is run in `folder`, and knows no other place from its environment.
inline void enter(const TempDir& folder) {
  if (::chdir(folder.path().c_str()) != 0) ::_exit(126);
  for (const char* name : {"WEIR_URL", "WEIR_TOKEN", "STATE_DIR", "CONTROL_PLANE_URL"}) ::unsetenv(name);
}

// `weir up` in the background, in a state folder of its own; one that is not `named` is where it is without a flag.
class Up {
 public:
  explicit Up(const TempDir& folder, std::vector<std::string> more = {}, bool named = true)
      : state_(folder.path() + (named ? "/state" : "/.weir")) {
    std::string out = folder.path() + "/up.out", err = folder.path() + "/up.err";
    std::filesystem::remove(out);  // so that the output of an earlier one is not taken for this one's
    more.insert(more.begin(), {WEIR_BINARY, "up", "--listen", "127.0.0.1:0"});
    if (named) more.insert(more.end(), {"--state-dir", state_});
    std::vector<char*> argv;
    for (std::string& word : more) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      (void)!::freopen(out.c_str(), "w", stdout);
      (void)!::freopen(err.c_str(), "w", stderr);
      enter(folder);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    EXPECT_TRUE(eventually(30s, [&] { return file_text(out).find("Ctrl-C stops it.") != std::string::npos; }))
        << file_text(out) << file_text(err);
    welcome_ = file_text(out);
  }
  ~Up() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  Up(const Up&) = delete;
  const std::string& state() const { return state_; }
  const std::string& welcome() const { return welcome_; }
  int interrupt() {
    ::kill(pid_, SIGINT);
    int status = 0;
    EXPECT_TRUE(eventually(30s, [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }));
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  const std::string state_;
  std::string welcome_;
  int pid_ = -1;
};

inline bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// One sentence for a person, nothing on stdout, no trace of a program's inside.
inline void expect_complaint(const Ran& ran, int code, std::string_view part) {
  EXPECT_EQ(ran.code, code) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(ran.err.starts_with("weir: ")) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_TRUE(has(ran.err, part)) << ran.err;
  EXPECT_FALSE(has(ran.err, "terminate called") || has(ran.err, "std::")) << ran.err;
}

inline std::vector<std::string> words_of(const std::string& command) {
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

class CliUp : public testing::Test {
 protected:
  CliUp() : up(folder) {}
  Ran run(const std::string& command, std::vector<std::string> more = {}) {
    std::vector<std::string> words = words_of(command);
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--state-dir", up.state()});
    return weir(folder, words);
  }
  // Runs it, wants success, and returns what was printed.
  std::string done(const std::string& command, std::vector<std::string> more = {}) {
    Ran ran = run(command, std::move(more));
    EXPECT_EQ(ran.code, 0) << command << ": " << ran.err;
    return ran.out;
  }
  json::value as_json(const std::string& command) {
    Ran ran = run(command, {"--json"});
    EXPECT_EQ(ran.code, 0) << command << ": " << ran.err;
    return ran.parsed();
  }
  TempDir folder;
  Up up;
};

}  // namespace weir::test
