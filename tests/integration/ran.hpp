// Ran: what a `weir` command did that a test waited for: its exit code and what it said. Any thread.
#pragma once

#include "temp_files.hpp"
#include "where.hpp"

#include "weir/base/json.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace weir::test {

struct Ran {
  int code = -1;
  std::string out, err;
  json::value parsed() const {
    auto value = json::parse_text(out);
    EXPECT_TRUE(value) << out << err;
    return value ? *value : json::value();
  }
};

// None of the words may hold a quote. A command that has not ended after a minute is ended.
inline Ran run_weir(const TempDir& folder, const std::vector<std::string>& words, const std::string& environment = "") {
  std::string out = folder.path() + "/ran.out", err = folder.path() + "/ran.err";
  std::string command = fmt::format("cd {} && env -u DATABASE_URL -u STATE_DIR {} timeout 60 '{}'", folder.path(),
                                    environment, WEIR_BINARY);
  for (const std::string& word : words) command += fmt::format(" '{}'", word);
  int status = std::system(fmt::format("{} >{} 2>{} </dev/null", command, out, err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_in_file(out), text_in_file(err)};
}

}  // namespace weir::test
