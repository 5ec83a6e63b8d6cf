// What a machine can carry: `weir size` measures it, and a runner that was given no capacity takes what was measured.
#include "fleet.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

namespace weir::test {
namespace {

struct Answer {
  int code;
  std::string out, err;
};

Answer size(const TempDir& folder, const std::string& words) {
  std::string out = folder.path() + "/out", err = folder.path() + "/err";
  std::string line = fmt::format("timeout 120 '{}' size {} >{} 2>{}", WEIR_BINARY, words, out, err);
  int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_in_file(out), text_in_file(err)};
}

std::string parts() { return fmt::format("--models-dir '{}' --library-dir '{}'", part("models"), part("lib")); }

std::int64_t whole(const json::value& row, std::string_view name) { return row.at(name).to_number<std::int64_t>(); }

TEST(Size, MeasuresTheMachineInHalfAMinute_AndMoreWorkIsFewerCameras) {
  if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
  TempDir folder;
  Duration stalled = StallMonitor::get().total();
  Instant began = boot_now();
  Answer answer = size(folder, "--json " + parts());
  double took = seconds(boot_now() - began);
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_TRUE(within(took, 30, stalled));
  auto said = json::parse_text(answer.out);
  ASSERT_TRUE(said) << answer.out;
  const json::value& measured = said->at("measurement");
  EXPECT_FALSE(measured.as_object().contains("detector_error")) << answer.out;
  // Every size has the same rows: 2, 6 and 12 looks a second.
  const json::array& rows = said->at("rows").as_array();
  ASSERT_EQ(rows.size(), 9u) << answer.out;
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_GE(whole(rows[i], "everything_moves"), 1) << answer.out;
    EXPECT_LE(whole(rows[i], "everything_moves"), whole(rows[i], "half_moves"));
    EXPECT_LE(whole(rows[i], "half_moves"), whole(rows[i], "still"));
    if (i % 3 != 0) {
      for (const char* column : {"everything_moves", "half_moves"})
        EXPECT_LT(whole(rows[i], column), whole(rows[i - 1], column)) << "more looks, fewer cameras: " << answer.out;
    }
    if (i >= 3) {
      EXPECT_GE(whole(rows[i], "still"), whole(rows[i - 3], "still")) << "a smaller picture costs less: " << answer.out;
    }
  }
}

TEST(Size, OfACameraThatSomebodyHas_ItSaysWhetherItFits_AndAMissingModelIsNotHidden) {
  TempDir folder;
  Answer answer = size(folder, "--cameras 9000 --resolution 640x360 --fps 3 --model none");
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_NE(answer.out.find("9000 cameras of 640x360 looked at 3 times a second do not fit here"), std::string::npos)
      << answer.out;
  answer = size(folder, "--resolution 640x360 --fps 3 --models-dir /nowhere");
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_NE(answer.out.find("the figures are without a detector"), std::string::npos) << answer.out;
  for (const char* wrong : {"--resolution big", "--codec vp8", "--cameras 1.5", "--fps 0"}) {
    answer = size(folder, wrong);
    EXPECT_EQ(answer.code, 2) << wrong;
    EXPECT_TRUE(answer.err.starts_with("weir: --")) << wrong << answer.err;
    EXPECT_EQ(answer.out, "") << wrong;
  }
}

class SizeOfRunner : public ::testing::Test {
 protected:
  std::vector<std::string> flags(const std::string& models) {
    return {"--control-plane-url", plane_.url(), "--auth-secret-file", plane_.folder() + "/auth.secret",
            "--capacity-streams", "0", "--prom-manager-port", "0", "--prom-worker-port", "0", "--models-dir", models, "--library-dir", part("lib")};
  }
  // What the control plane knows, once the runner has registered; and what the runner's last start said.
  int registered() {
    int capacity = -1;
    EXPECT_TRUE(eventually(20s, [&] {
      Reply shown = plane_.get("/v1/runners/r1");
      if (shown.status != 200) return false;
      capacity = static_cast<int>(shown.body.at("capacity_streams").to_number<int>());
      return true;
    }));
    return capacity;
  }
  static std::string last_capacity(const Runner& runner) {
    std::string log = runner.log(), line;
    size_t at = log.rfind("\"event\":\"runner.capacity\"");
    return at == std::string::npos ? "" : log.substr(at, log.find('\n', at) - at);
  }

  TempDir folder_;
  WeirProcess plane_{folder_.path(), "sqlite:" + folder_.path() + "/weir.db"};
};

TEST_F(SizeOfRunner, WithoutACapacity_TakesWhatWasMeasuredOnce_AndReadsItAtTheNextStart) {
  if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
  Runner runner(WEIR_BINARY, "r1", folder_.path() + "/r1", flags(part("models")));
  int first = registered();
  EXPECT_GE(first, 1);
  EXPECT_TRUE(runner.logged("runner.measuring")) << runner.log();
  std::string said = last_capacity(runner);
  std::string form = fmt::format("{} cameras?: [0-9.]+ processors?, [0-9.]+ ms a picture, measured on ", first);
  EXPECT_TRUE(std::regex_search(said, std::regex(form))) << said;
  std::string file = folder_.path() + "/r1/machine.json", kept = text_in_file(file);
  struct stat about {};
  ASSERT_EQ(::stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);

  // The file now says that the detector is ten times as slow: a runner that reads it believes that, one that measures
  // again does not.
  auto measured = json::parse_text(kept);
  ASSERT_TRUE(measured) << kept;
  json::value& costs = measured->at("measurement").at("sizes").at(0).at("costs");
  costs.as_object()["detect_ms"] = costs.at("detect_ms").to_number<double>() * 10;
  std::ofstream(file) << json::to_text(*measured);
  runner.kill_everything();
  runner.start();
  EXPECT_TRUE(eventually(20s, [&] { return registered() < first; })) << runner.log();
  std::string log = runner.log();
  EXPECT_EQ(log.find("runner.measuring"), log.rfind("runner.measuring")) << "measured again: " << log;

  // Another processor, says the file: it is measured again.
  measured->at("identity").as_object()["cpu"] = "another";
  std::ofstream(file) << json::to_text(*measured);
  runner.kill_everything();
  runner.start();
  EXPECT_TRUE(runner.logged("this machine is another than when it was measured")) << runner.log();
  EXPECT_EQ(text_in_file(file).find("another"), std::string::npos) << text_in_file(file);
}

TEST_F(SizeOfRunner, WithoutAModel_GuessesByItsProcessors_SaysSo_AndKeepsNothing) {
  Runner runner(WEIR_BINARY, "r1", folder_.path() + "/r1", flags("/nowhere"));
  int capacity = registered();
  EXPECT_GE(capacity, 1);
  std::string said = last_capacity(runner);
  EXPECT_NE(said.find(fmt::format("{} camera", capacity)), std::string::npos) << said;
  EXPECT_NE(said.find("a guess: this machine could not be measured"), std::string::npos) << said;
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/r1/machine.json"));
}

TEST_F(SizeOfRunner, ToldToStopWhileItMeasures_EndsAtOnce) {
  std::string log = folder_.path() + "/log";
  std::string words;
  for (const std::string& word : flags(part("models"))) words += fmt::format(" '{}'", word);
  // SIGTERM is sent when the log says that it measures.
  std::string script = fmt::format(
      ": >{3}; '{0}' runner --runner-id r1 --state-dir {1}/r1 {2} >/dev/null 2>{3} </dev/null & pid=$!; "
      "until grep -q runner.measuring {3}; do kill -0 $pid || exit 99; done; kill -TERM $pid; wait $pid",
      WEIR_BINARY, folder_.path(), words, log);
  std::ofstream(folder_.path() + "/script") << script;
  int status = std::system(fmt::format("timeout 60 sh {}/script", folder_.path()).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 0) << text_in_file(log);
  EXPECT_EQ(text_in_file(log).find("runner.started"), std::string::npos) << "it had not measured yet: " << text_in_file(log);
}

}  // namespace
}  // namespace weir::test
