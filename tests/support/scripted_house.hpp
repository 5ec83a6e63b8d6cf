// ScriptedHouse: a ClusterHouse whose detection workers look at no camera, but do what a test tells them and keep a diary
// (tests/integration/scripted_worker.py), so that the test can hold what they ran against what was wanted and delivered.
//
// A test adds to the diary what the worker itself cannot write down: that it was killed, frozen and let go on. All times
// are milliseconds since 1970. Main thread only.
#pragma once

#include "cluster_house.hpp"

#include <chrono>

namespace weir::test {

// What a worker wrote down.
struct DiaryEntry {
  std::int64_t at = 0;
  std::string what = {};  // started, connected, closed, subscribe, unsubscribe, said; killed, frozen, thawed
  std::int64_t connection = 0;
  std::string subscription = {};
  json::object wanted = {};  // the payload of a subscribe
};

using Diaries = std::map<std::string, std::vector<DiaryEntry>>;  // by the worker's name

inline std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class ScriptedWorker {
 public:
  ScriptedWorker(const TempDir& folder, std::string name, int port, std::vector<std::string> manner = {})
      : name_(std::move(name)), path_(folder.path() + "/" + name_), port_(port), manner_(std::move(manner)) {
    start();
  }
  void start() {
    std::vector<std::string> words{"/usr/bin/python3", WEIR_SOURCE_DIR "/tests/integration/scripted_worker.py",
                                   std::to_string(port_), name_, path_ + ".diary"};
    words.insert(words.end(), manner_.begin(), manner_.end());
    program_ = std::make_unique<Program>(path_ + ".log", words);
    EXPECT_TRUE(eventually(20s, [&] { return accepts(port_); })) << program_->log();
  }
  void kill() {
    program_->signal(SIGKILL);
    program_->wait();
    mark("killed");
  }
  void freeze() {
    program_->signal(SIGSTOP);
    mark("frozen");
  }
  void thaw() {
    mark("thawed");
    program_->signal(SIGCONT);
  }

  const std::string& name() const { return name_; }
  std::string address() const { return fmt::format("ws://127.0.0.1:{}", port_); }
  std::string log() const { return program_->log() + text_in_file(path_ + ".diary"); }
  std::vector<DiaryEntry> diary() const {
    std::vector<DiaryEntry> all;
    std::istringstream lines(text_in_file(path_ + ".diary"));
    for (std::string line; std::getline(lines, line);) {
      auto read = json::parse_text(line);
      if (!read) continue;  // the last line, half written
      DiaryEntry& one = all.emplace_back();
      const json::object& said = read->as_object();
      one.at = said.at("at").to_number<std::int64_t>();
      one.what = std::string(said.at("what").as_string());
      if (const auto* number = said.if_contains("connection")) one.connection = number->to_number<std::int64_t>();
      if (const auto* text = said.if_contains("subscription")) one.subscription = std::string(text->as_string());
      if (const auto* payload = said.if_contains("wanted")) one.wanted = payload->as_object();
    }
    return all;
  }
  // What it runs now, by subscription, as it was told to.
  std::map<std::string, json::object> runs() const {
    std::map<std::string, json::object> now;
    for (DiaryEntry& each : diary()) {
      if (each.what == "started" || each.what == "killed") now.clear();
      if (each.what == "subscribe") now[each.subscription] = std::move(each.wanted);
      if (each.what == "unsubscribe") now.erase(each.subscription);
    }
    return now;
  }
  // When this happened to the subscription first, after `since`; 0 if it did not.
  std::int64_t when(const std::string& what, const std::string& subscription, std::int64_t since = 0) const {
    for (const DiaryEntry& each : diary())
      if (each.what == what && each.subscription == subscription && each.at >= since) return each.at;
    return 0;
  }

 private:
  void mark(const std::string& what) const {
    std::ofstream(path_ + ".diary", std::ios::app) << fmt::format("{{\"at\":{},\"what\":\"{}\"}}\n", now_ms(), what);
  }

  const std::string name_, path_;
  const int port_;
  const std::vector<std::string> manner_;
  std::unique_ptr<Program> program_;
};

// For how long, in milliseconds, two of the workers ran the same subscription at most, and which. A frozen worker runs
// nothing.
inline std::pair<std::int64_t, std::string> longest_overlap(const Diaries& diaries) {
  struct Stay {
    std::string worker;
    std::int64_t from, until;
  };
  std::map<std::string, std::vector<Stay>> stays;
  for (const auto& [worker, diary] : diaries) {
    std::map<std::string, std::int64_t> open;
    for (const DiaryEntry& each : diary) {
      bool stops = each.what == "killed" || each.what == "frozen";
      for (auto& [subscription, from] : open) {
        if (stops || (each.what == "unsubscribe" && each.subscription == subscription))
          stays[subscription].push_back({worker, from, each.at});
        if (each.what == "thawed") from = each.at;
      }
      if (each.what == "subscribe") open.try_emplace(each.subscription, each.at);
      if (each.what == "unsubscribe") open.erase(each.subscription);
      if (each.what == "killed") open.clear();
    }
    for (const auto& [subscription, from] : open) stays[subscription].push_back({worker, from, now_ms()});
  }
  std::pair<std::int64_t, std::string> longest{0, ""};
  for (const auto& [subscription, all] : stays)
    for (const Stay& a : all)
      for (const Stay& b : all) {
        std::int64_t both = std::min(a.until, b.until) - std::max(a.from, b.from);
        if (a.worker < b.worker && both > longest.first)
          longest = {both, fmt::format("{} at {} and {} from {}", subscription, a.worker, b.worker, std::max(a.from, b.from))};
      }
  return longest;
}

// Those of the delivered results that a worker sent after it had read that it no longer has the subscription, as text.
// The master may count it as the worker's again a moment before the worker reads so.
inline std::vector<std::string> foreign_results(const std::vector<json::object>& delivered,
                                                const Diaries& diaries) {
  constexpr std::int64_t kOnItsWay = 2000;
  std::vector<std::string> found;
  for (const auto& [worker, diary] : diaries) {
    std::map<std::string, std::map<std::int64_t, bool>> has;  // from then on
    for (const DiaryEntry& each : diary)
      if (each.what == "subscribe" || each.what == "unsubscribe") has[each.subscription][each.at] = each.what == "subscribe";
    for (const json::object& each : delivered) {
      std::string plate(each.at("data").at("detection").at("licensePlateText").as_string());
      if (!plate.starts_with(worker + " ")) continue;
      std::int64_t sent = std::stoll(plate.substr(worker.size() + 1));
      std::string subscription(each.at("subscriptionIdentifier").as_string());
      auto& turns = has[subscription];
      auto after = turns.upper_bound(sent - 1);  // what came in the very millisecond may have come later
      bool had = after != turns.begin() && std::prev(after)->second;
      bool gets = after != turns.end() && after->first <= sent + kOnItsWay &&
                  std::any_of(after, turns.upper_bound(sent + kOnItsWay), [](const auto& turn) { return turn.second; });
      bool had_till_now = after != turns.end() && after->first == sent;
      if (!had && !gets && !had_till_now) found.push_back(fmt::format("{} of {}", subscription, plate));
    }
  }
  return found;
}

class ScriptedHouse : public ClusterHouse {
 protected:
  // The control plane alone; a test adds workers as it needs them.
  void SetUp() override {
    if (std::string why = no_websockets(); !why.empty()) GTEST_SKIP() << why;
    furnish("rtsp://camera.example/stream");
  }
  // Addresses for so many workers, none of which is there yet.
  void reserve(size_t workers) {
    for (size_t i = 0; i < workers; ++i) ports_.push_back(free_port());
    scripted_.resize(workers);
  }
  ScriptedWorker& work(int number, const std::string& name, std::vector<std::string> manner = {}) {
    auto& place = scripted_[static_cast<size_t>(number)];
    place = std::make_unique<ScriptedWorker>(folder_, name, ports_[number], std::move(manner));
    return *place;
  }
  ScriptedWorker& worker(int number) { return *scripted_[static_cast<size_t>(number)]; }
  std::vector<const ScriptedWorker*> everybody() const {
    std::vector<const ScriptedWorker*> all;
    for (const auto& each : scripted_)
      if (each) all.push_back(each.get());
    return all;
  }
  Diaries diaries() const {
    Diaries all;
    for (const ScriptedWorker* each : everybody()) all[each->name()] = each->diary();
    return all;
  }
  // How many detections of this display by this worker the feed has.
  size_t delivered(const std::string& display, const ScriptedWorker& by) const {
    auto all = detections();
    return static_cast<size_t>(std::ranges::count_if(all, [&](const json::object& each) {
      return each.at("display_id") == json::value(display) && each.at("worker") == json::value(by.address());
    }));
  }
  std::string everything() const {
    std::string all = report();
    for (const ScriptedWorker* each : everybody()) all += each->name() + ":\n" + each->log();
    return all;
  }

  std::vector<std::unique_ptr<ScriptedWorker>> scripted_;
};

}  // namespace weir::test
