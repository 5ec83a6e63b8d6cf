// A small world for the brain's tests: a store that answers by the real rules, workers that obey, a clock that jumps.
// One thread.
#pragma once

#include "weir/lease/ledger.hpp"
#include "weir/runner/brain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace weir::runner::testing {

inline Wish wish(const std::string& name, const std::string& site = "s", const std::string& version = "v1") {
  Wish out;
  out.config.camera = CameraId::trusted(name);
  out.config.site = SiteId::trusted(site);
  out.config.tenant = TenantId::trusted("t");
  out.version = version;
  return out;
}

inline std::vector<Wish> cameras(int count) {
  std::vector<Wish> out;
  for (int i = 0; i < count; ++i) out.push_back(wish(fmt::format("c{:02}", i)));
  return out;
}

// One runner's brain, with everything around it played by this class.
class Bench {
 public:
  explicit Bench(Policy policy = {}) : brain(tuned(policy), BootId::trusted("b1"), RunnerId::trusted("r1"), 7) {}

  struct Told {
    WorkerNumber worker;
    Message what;
    CameraId camera;
    lease::Version version;
    std::optional<WallTime> after;
  };
  struct Process {
    bool up = false, alive = true, standby = false, answers = true, ready = true;
    Duration cpu = {};     // the processor time that it has used
    bool computes = true;  // and goes on to
    bool confirms = true;  // otherwise it obeys, and its answer is lost
    std::optional<Message> slow = {};  // what it obeys without an answer so far
    std::optional<WallTime> said = {};  // its last word, where that is not of this moment
    std::map<CameraId, lease::Version> speaks;
    std::set<CameraId> sources;
    std::set<CameraId> blind = {};  // of these it gets no pictures
  };
  struct Row {
    std::string owner;
    lease::Version version{};
    lease::Version grant{};
  };

  void feed(const Event& event) {
    for (Action& action : brain.handle(event, {now, wall()})) pending.push_back(std::move(action));
    settle();
  }
  WallTime wall() const { return WallTime((now - set_back).time_since_epoch()); }
  // Answers every question, until nothing is left to do.
  void settle() {
    while (!pending.empty()) {
      Action action = std::move(pending.front());
      pending.pop_front();
      std::visit([this](auto& each) { perform(each); }, action);
    }
  }
  void pass(Duration d) {
    for (Instant until = now + d; now < until;) {
      now = std::min(until, now + Duration(100ms));
      feed(TimePassed{});
      for (auto& [number, process] : processes) {
        if (!process.alive || !process.up) continue;
        if (process.computes) process.cpu += 10ms;
        if (!process.answers) feed(WorkerSilent{number, process.cpu});
        if (!process.answers) continue;
        WorkerHeard heard{.worker = number};
        for (const CameraId& camera : process.sources) {
          heard.cameras.push_back(seen_of(camera));
          heard.cameras.back().streaming &= process.ready && !process.blind.contains(camera);
        }
        feed(heard);
      }
    }
  }
  void list(std::vector<Wish> cameras) {
    wishes = std::move(cameras);
    feed(CamerasListed{wishes});
  }
  void kill(WorkerNumber number, const std::string& culprit = "") {
    processes.at(number).alive = false;
    feed(WorkerGone{number, 139, CameraId::trusted(culprit)});
  }
  // The process that speaks for the camera: there must never be two.
  WorkerNumber speaker(const std::string& name) const {
    WorkerNumber found = 0;
    for (const auto& [number, process] : processes)
      if (process.alive && process.speaks.contains(CameraId::trusted(name))) {
        EXPECT_EQ(found, 0) << name << " is spoken for by two processes";
        found = number;
      }
    return found;
  }
  int workers_alive() const {
    return static_cast<int>(std::ranges::count_if(processes, [](const auto& each) { return each.second.alive; }));
  }
  bool noted(const std::string& event) const {
    return std::ranges::any_of(notes, [&](const Note& note) { return note.event == event; });
  }

  Instant now{10000s};
  Duration set_back{};  // of the wall clock
  Brain brain;
  std::deque<Action> pending;
  std::map<WorkerNumber, Process> processes;
  std::map<WorkerNumber, StartWorker> started;
  std::map<CameraId, Row> rows;
  std::vector<Wish> wishes;
  std::vector<Told> told;
  std::vector<Note> notes;
  std::map<CameraId, SeenCamera> seen;
  std::map<lease::Version, WorkerNumber> handed;
  std::optional<End> ended;
  bool plane_answers = true, auto_start = true, tokens = true, greens_get_ready = true;
  bool reaps = true;  // otherwise the kernel holds what was killed
  int token_questions = 0, budget_questions = 0;
  std::map<std::string, std::optional<double>> budgets;  // of sites that have not plenty
  int killed = 0;  // workers, by the brain
  std::vector<CameraId> crashes;

 private:
  static Policy tuned(Policy policy) {
    policy.poll = 2s;
    return policy;
  }
  SeenCamera seen_of(const CameraId& camera) const {
    auto found = seen.find(camera);
    return found == seen.end() ? SeenCamera{.camera = camera, .streaming = true} : found->second;
  }

  void perform(AskLeases& ask) {
    LeasesHeard heard;
    for (const lease::Question& question : ask.questions) {
      const CameraId& camera = question.ask.subject;
      if (!plane_answers) {
        heard.answers.push_back({camera, lease::Unanswered{question.id}});
        continue;
      }
      heard.answers.push_back({camera, lease::Answered{question.id, answer(question)}});
    }
    feed_later(heard);
  }
  lease::Answer answer(const lease::Question& question) {
    Row& row = rows[question.ask.subject];
    lease::Answer out{question.ask.subject};
    out.ttl = 6s;
    bool mine = row.owner == "r1";
    switch (question.operation) {
      case lease::Operation::acquire:
        if (!row.owner.empty() && !mine) {
          out.outcome = lease::Outcome::held;
          break;
        }
        row = {"r1", {++counter}, {counter}};
        out.outcome = lease::Outcome::granted;
        break;
      case lease::Operation::renew:
        if (!mine || question.ask.version != row.version) {
          out.outcome = lease::Outcome::lost;
          break;
        }
        if (std::exchange(new_epoch, false)) {
          row = {"r1", {++counter}, {counter}};
          out.outcome = lease::Outcome::granted;
          break;
        }
        out.outcome = question.ask.rotate ? lease::Outcome::rotated : lease::Outcome::renewed;
        if (question.ask.rotate) row.version = {++counter};
        break;
      case lease::Operation::release:
        if (question.ask.avoid && keep_unreachable) {
          out.outcome = lease::Outcome::kept;
          break;
        }
        row = {"", {++counter}, row.grant};
        out.outcome = lease::Outcome::released;
        break;
    }
    out.version = row.version;
    out.grant = row.grant;
    return out;
  }
  void perform(AskToken& ask) {
    ++token_questions;
    feed_later(TokenHeard{.camera = ask.camera, .grant = ask.grant, .granted = tokens, .retry_after = 500ms,
                          .refused = !tokens});
  }
  void perform(AskBudget& ask) {
    ++budget_questions;
    auto found = budgets.find(ask.site.str());
    feed_later(BudgetHeard{ask.site, found == budgets.end() ? 1000 : found->second});
  }
  void perform(StartWorker& start) {
    started[start.worker] = start;
    Process& process = processes[start.worker];
    process.standby = start.standby;
    process.ready = !start.standby || greens_get_ready;
    for (const camera::Config& config : start.sources) process.sources.insert(config.camera);
    if (!auto_start) return;
    process.up = true;
    feed_later(WorkerUp{start.worker});
  }
  void perform(KillWorker& kill) {
    ++killed;
    processes.at(kill.worker).alive = false;
    if (reaps) feed_later(WorkerGone{kill.worker, 137});
  }
  void perform(Tell& tell) {
    Process& process = processes.at(tell.worker);
    runner::Told answer{.message = tell.message, .ok = process.alive && process.answers};
    for (const TellItem& item : tell.items) {
      lease::Version version = item.right ? item.right->version : lease::Version{};
      told.push_back({tell.worker, tell.what, item.camera, version, item.after});
      if (!answer.ok) continue;
      if (item.right) {
        auto [known, first] = handed.emplace(item.right->version, tell.worker);
        EXPECT_EQ(known->second, tell.worker) << "one version for two processes";
        process.speaks[item.camera] = item.right->version;
        process.sources.insert(item.camera);
      } else if (tell.what != Message::drain) {
        process.speaks.erase(item.camera);
        if (tell.what != Message::silence) process.sources.erase(item.camera);
        answer.last_capture[item.camera] = process.said.value_or(wall());
      }
    }
    bool obeyed = answer.ok;
    answer.ok &= process.confirms;
    if (process.slow != tell.what) feed_later(answer);
    if (tell.what == Message::drain && obeyed) {
      EXPECT_TRUE(process.speaks.empty()) << "a worker was drained while it spoke";
      process.alive = false;
      feed_later(WorkerGone{tell.worker, 0});
    }
  }
  void perform(ReportCrash& crash) { crashes.push_back(crash.camera); }
  void perform(Note& note) { notes.push_back(note); }
  void perform(End& end) { ended = end; }

  void feed_later(const Event& event) {
    for (Action& action : brain.handle(event, {now, wall()})) pending.push_back(std::move(action));
  }

 public:
  bool keep_unreachable = false;
  bool new_epoch = false;  // since the last renewal: it ends the tenure
  std::int64_t counter = 100;
};

}  // namespace weir::runner::testing
