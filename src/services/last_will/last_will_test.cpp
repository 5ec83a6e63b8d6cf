#include "weir/last_will/last_will.hpp"

#include "weir/base/spawn.hpp"

#include "log_lines.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <csignal>
#include <deque>

namespace weir::last_will {
namespace {

namespace asio = boost::asio;
using Notes = std::vector<std::string>;

// A manager whose words and end the test decides.
struct Script {
  explicit Script(asio::io_context& io) : changed(io, asio::steady_timer::time_point::max()) {}
  std::deque<std::string> lines;
  std::optional<int> code;
  asio::steady_timer changed;

  void say(std::string line) {
    lines.push_back(std::move(line));
    changed.cancel();
  }
  void end(int with) {
    code = with;
    changed.cancel();
  }
  asio::awaitable<void> change() {
    boost::system::error_code woken;
    co_await changed.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
};

class ScriptedChild final : public Child {
 public:
  ScriptedChild(Script& script, Notes& notes) : script_(script), notes_(notes) {}
  int pid() const override { return 4711; }
  asio::awaitable<Result<std::string>> read_line() override {
    while (script_.lines.empty() && !script_.code) co_await script_.change();
    if (script_.lines.empty()) co_return Error{Errc::unavailable, "child", "it has ended"};
    std::string line = script_.lines.front();
    script_.lines.pop_front();
    co_return line;
  }
  asio::awaitable<int> wait() override {
    while (!script_.code) co_await script_.change();
    co_return *script_.code;
  }
  bool running() override { return !script_.code; }
  void signal(int number) const override { notes_.push_back("signal " + std::to_string(number)); }
  Duration cpu_time() const override { return 0s; }

 private:
  Script& script_;
  Notes& notes_;
};

struct ScriptedHost final : ProcessHost {
  ScriptedHost(asio::io_context& io, Notes& all) : manager(io), notes(all) {}
  Result<std::unique_ptr<Child>> start(const Program& program) override {
    if (program.path.empty()) return Error{Errc::unavailable, "child", "there is no such program"};
    notes.push_back("start");
    return std::unique_ptr<Child>(std::make_unique<ScriptedChild>(manager, notes));
  }
  Script manager;
  Notes& notes;
};

struct ScriptedHousehold final : Household {
  explicit ScriptedHousehold(Notes& all) : notes(all) {}
  bool end_all() override {
    notes.push_back("end all");
    return obeys;
  }
  bool obeys = true;
  Notes& notes;
};

struct ScriptedFile final : TestamentFile {
  explicit ScriptedFile(Notes& all) : notes(all) {}
  const std::optional<Testament>& left_behind() const override { return earlier; }
  Status write(const Testament& testament) override {
    notes.push_back("write " + testament.boot.str());
    return ok();
  }
  Status clear() override {
    notes.push_back("clear");
    return ok();
  }
  std::optional<Testament> earlier;
  Notes& notes;
};

// Answers in turn; the last answer for ever.
struct Answers {
  std::deque<WillAnswer> next{WillAnswer::carried_out};
  int addresses = 1;
  int asked = 0;
};

class ScriptedOffice final : public WillOffice {
 public:
  ScriptedOffice(Answers& answers, std::string at, Notes& notes) : answers_(answers), at_(std::move(at)), notes_(notes) {}
  int addresses() const override { return answers_.addresses; }
  asio::awaitable<WillAnswer> carry_out(Testament testament) override {
    WillAnswer answer = answers_.next.front();
    if (answers_.next.size() > 1) answers_.next.pop_front();
    ++answers_.asked;
    if (answer == WillAnswer::carried_out)
      notes_.push_back("released " + testament.boot.str() + " by " + testament.will.reveal() + " at " + at_);
    co_return answer;
  }

 private:
  Answers& answers_;
  const std::string at_;
  Notes& notes_;
};

class LastWillTest : public ::testing::Test {
 protected:
  void begin() {
    auto find_office = [this](const std::string& at) -> std::unique_ptr<WillOffice> {
      if (at == "nonsense") return nullptr;
      return std::make_unique<ScriptedOffice>(answers_, at, notes_);
    };
    will_ = std::make_unique<LastWill>(clock_, host_, household_, file_, find_office, settings_);
    auto keep = [this]() -> asio::awaitable<void> { code_ = co_await will_->run(); };
    running_ = keep;
    spawn(io_.get_executor(), running_(), "the last will");
    pass(0s);
  }
  void pass(Duration time) { clock_.run(clock_.now() + time); }
  void says_its_will(const std::string& boot = "b2") {
    host_.manager.say("{\"boot_id\":\"" + boot + "\",\"will\":\"w-" + boot + "\"}");
    pass(0s);
  }
  void ends(int code) {
    host_.manager.end(code);
    pass(0s);
  }
  static Testament of_boot(const std::string& boot) {
    return {RunnerId::trusted("r1"), BootId::trusted(boot), Secret("w-" + boot)};
  }

  test::LogLines log_;
  Notes notes_;
  asio::io_context io_;
  VirtualClock clock_{io_};
  ScriptedHost host_{io_, notes_};
  ScriptedHousehold household_{notes_};
  ScriptedFile file_{notes_};
  Answers answers_;
  last_will::Settings settings_{.runner = RunnerId::trusted("r1"), .manager = {.path = "weir"}, .control_plane = "plane",
                                .ttl = 10s};
  std::unique_ptr<LastWill> will_;
  std::function<asio::awaitable<void>()> running_;
  std::optional<Result<int>> code_;
};

TEST_F(LastWillTest, AManagerThatDies_IsFollowedByTheEndOfAllBelow_ThenItsLeasesAreReleased) {
  begin();
  says_its_will();
  EXPECT_EQ(notes_, (Notes{"start", "write b2"})) << "nothing more while it runs";
  ends(128 + SIGKILL);
  EXPECT_EQ(notes_, (Notes{"start", "write b2", "end all", "released b2 by w-b2 at plane", "clear"}));
  ASSERT_TRUE(code_);
  EXPECT_EQ(**code_, 1) << "of one that a signal ended";
  EXPECT_EQ(log_.count("runner.manager_ended"), 1u);
}

TEST_F(LastWillTest, AManagerThatStopsWell_HasItsCode) {
  begin();
  says_its_will();
  ends(0);
  EXPECT_EQ(**code_, 0);
  EXPECT_EQ(log_.count("runner.manager_ended"), 0u);
}

TEST_F(LastWillTest, AManagerThatDiesBeforeItHeldAnything_HasNothingReleased) {
  begin();
  ends(3);
  EXPECT_EQ(notes_, (Notes{"start", "end all"}));
  EXPECT_EQ(**code_, 3);
}

TEST_F(LastWillTest, AWorkerThatCannotBeEnded_KeepsItsLeasesUntilTheyExpire) {
  household_.obeys = false;
  begin();
  says_its_will();
  ends(128 + SIGKILL);
  EXPECT_EQ(notes_, (Notes{"start", "write b2", "end all"}));
  EXPECT_EQ(answers_.asked, 0);
  EXPECT_EQ(log_.count("runner.stuck"), 1u);
  EXPECT_TRUE(code_);
}

TEST_F(LastWillTest, AManagerThatHangs_IsToldToStop) {
  begin();
  says_its_will();
  pass(1h);
  EXPECT_FALSE(code_) << "a manager that hangs is not this one's to judge";
  will_->signal(SIGTERM);
  EXPECT_EQ(notes_.back(), "signal 15");
}

TEST_F(LastWillTest, AControlPlaneThatIsAway_IsAskedUntilTheLeasesHaveExpired_AndTheWillStaysInTheFile) {
  answers_.next = {WillAnswer::none};
  begin();
  says_its_will();
  ends(1);
  pass(9s);
  EXPECT_FALSE(code_);
  pass(2s);
  EXPECT_TRUE(code_);
  EXPECT_EQ(answers_.asked, 50) << "five times a second";
  EXPECT_EQ(notes_, (Notes{"start", "write b2", "end all"}));
  EXPECT_EQ(log_.count("runner.will_failed"), 1u);
}

TEST_F(LastWillTest, AControlPlaneThatComesBack_IsToldTheWill) {
  answers_.next = {WillAnswer::none, WillAnswer::none, WillAnswer::carried_out};
  begin();
  says_its_will();
  ends(1);
  pass(1s);
  EXPECT_EQ(notes_.back(), "clear");
  EXPECT_EQ(answers_.asked, 3);
}

TEST_F(LastWillTest, AWillThatEveryAddressRefuses_IsForgotten) {
  answers_ = {.next = {WillAnswer::refused, WillAnswer::none, WillAnswer::refused}, .addresses = 2};
  begin();
  says_its_will();
  ends(1);
  pass(300ms);
  EXPECT_FALSE(code_) << "the other address may know this boot";
  pass(200ms);
  EXPECT_EQ(answers_.asked, 3);
  EXPECT_EQ(notes_.back(), "clear");
  EXPECT_TRUE(code_);
}

TEST_F(LastWillTest, WhatAnEarlierBootLeftBehind_IsReleasedBeforeTheManagerStarts) {
  file_.earlier = of_boot("b1");
  begin();
  EXPECT_EQ(notes_, (Notes{"released b1 by w-b1 at plane", "clear", "start"}));
  EXPECT_EQ(log_.count("runner.will_found"), 1u);
}

TEST_F(LastWillTest, WhatAnEarlierBootLeftBehind_HoldsUpTheManagerFor3s_AndIsSentWhenItHasReachedTheControlPlane) {
  file_.earlier = of_boot("b1");
  answers_.next = {WillAnswer::none};
  begin();
  pass(2900ms);
  EXPECT_EQ(notes_, Notes{});
  pass(200ms);
  EXPECT_EQ(notes_, (Notes{"start"}));
  answers_.next = {WillAnswer::carried_out};
  pass(1min);
  EXPECT_EQ(notes_, (Notes{"start"})) << "the manager has not reached the control plane yet";
  says_its_will("b2");
  EXPECT_EQ(notes_, (Notes{"start", "released b1 by w-b1 at plane", "write b2"})) << "b2's will stays in the file";
}

TEST_F(LastWillTest, AnotherControlPlane_IsToldTheWill_OnceTheManagerHasNamedIt) {
  std::string heard;
  settings_.listening = [&](const std::string& address) { heard = address; };
  begin();
  host_.manager.say("no JSON");
  host_.manager.say("[1]");
  host_.manager.say("{\"listening\":\"127.0.0.1:9\",\"boot_id\":7}");
  says_its_will();
  host_.manager.say("{\"control_plane\":\"other\"}");
  pass(0s);
  ends(0);
  EXPECT_EQ(heard, "127.0.0.1:9");
  EXPECT_EQ(notes_, (Notes{"start", "write b2", "end all", "released b2 by w-b2 at other", "clear"}));
}

TEST_F(LastWillTest, AnAddressWithoutSense_LeavesTheWillInTheFile) {
  settings_.control_plane = "nonsense";
  begin();
  says_its_will();
  ends(0);
  EXPECT_EQ(notes_, (Notes{"start", "write b2", "end all"}));
  EXPECT_TRUE(code_);
}

TEST_F(LastWillTest, WithItsLifelineCut_EverythingEnds_AndTheWillStaysInTheFile) {
  begin();
  says_its_will();
  EXPECT_TRUE(will_->abandon());
  EXPECT_EQ(notes_, (Notes{"start", "write b2", "end all"}));
}

TEST_F(LastWillTest, ALifelineThatIsCutWhileTheWillIsSent_ChangesNothing) {
  answers_.next = {WillAnswer::none};
  begin();
  EXPECT_FALSE(LastWill(clock_, host_, household_, file_, {}, settings_).abandon()) << "there is no manager yet";
  says_its_will();
  ends(1);
  EXPECT_FALSE(will_->abandon());
  answers_.next = {WillAnswer::carried_out};
  pass(1s);
  EXPECT_EQ(notes_.back(), "clear");
}

TEST_F(LastWillTest, AManagerThatCannotBeStarted_IsAnError) {
  settings_.manager.path = "";
  bool started = false;
  settings_.started = [&] { started = true; };
  begin();
  ASSERT_TRUE(code_);
  ASSERT_FALSE(*code_);
  EXPECT_EQ(code_->error().message, "there is no such program");
  EXPECT_FALSE(started);
}

}  // namespace
}  // namespace weir::last_will
