// A bus that does what a script says and a disk in memory, for tests of the publisher. One thread.
#pragma once

#include "weir/worker/publisher.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include <set>

namespace weir::worker {

namespace asio = boost::asio;

// What the bus does with one request.
enum class Fate {
  answer,
  refuse_connection,  // nothing arrives
  lose_reply,         // everything arrives, nobody hears of it
  hang,               // nothing arrives, and no answer comes for a long time
  hang_after,         // everything arrives, and no answer comes for a long time
};

// Fenced as the embedded bus is: a version other than the row's is stale, a known event_id a duplicate.
class FakeBus final : public EventBus {
 public:
  explicit FakeBus(Clock& clock) : clock_(clock) {}

  asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<OutgoingEvent> events) override {
    ++requests;
    ++running;
    largest = std::max(largest, events.size());
    at_once = std::max(at_once, running);
    for (const OutgoingEvent& event : events) late += clock_.now() >= event.stamp->deadline ? 1 : 0;
    Fate fate = next_fate();
    struct Leave {
      int& running;
      ~Leave() { --running; }
    } leave{running};
    co_await clock_.wait(blocks);  // whatever can block before the bytes are written
    Error nothing{Errc::unavailable, "bus_unavailable", "nobody there"};
    if (fate == Fate::refuse_connection) co_return nothing;
    for (const OutgoingEvent& event : events)
      if (event.stamp && clock_.now() >= event.stamp->deadline)
        co_return Error{Errc::unavailable, "deadline_passed", "too late"};
    if (fate == Fate::hang) {
      co_await clock_.wait(std::chrono::hours(1));
      co_return nothing;
    }
    for (const OutgoingEvent& event : events)
      if (event.event_id == wrong) co_return Error{Errc::invalid, "bad_event", "an event is wrong"};
    std::vector<Confirmation> answers;
    for (OutgoingEvent& event : events) answers.push_back(judge(std::move(event)));
    co_await clock_.wait(fate == Fate::hang_after ? Duration(std::chrono::hours(1)) : answers_after);
    // A publisher that lost its patience has closed the connection: the answer reaches nobody.
    bool given_up = (co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none;
    if (fate == Fate::lose_reply || given_up) co_return nothing;
    co_return answers;
  }
  asio::awaitable<Status> subscribe(Subscription, std::function<bool(const DeliveredEvent&)>) override {
    co_return Error{Errc::unsupported, "no_subscription", "not here"};
  }

  std::vector<std::string> ids(const CameraId& camera) const {
    std::vector<std::string> found;
    for (const OutgoingEvent& event : accepted)
      if (event.stamp->camera == camera) found.push_back(event.event_id);
    return found;
  }

  std::function<Fate()> decide = {};  // where the script has ended
  std::deque<Fate> script;
  Duration blocks{}, answers_after{};
  std::map<CameraId, lease::Version> row;  // the version that is accepted; absent: every one
  std::string wrong = {};
  std::vector<OutgoingEvent> accepted;
  int requests = 0, running = 0, at_once = 0;
  int late = 0;  // events that were handed over past their deadline
  size_t largest = 0;

 private:
  Fate next_fate() {
    if (script.empty()) return decide ? decide() : Fate::answer;
    Fate fate = script.front();
    script.pop_front();
    return fate;
  }
  Confirmation judge(OutgoingEvent event) {
    auto at = row.find(event.stamp->camera);
    if (at != row.end() && at->second != event.stamp->version) return Confirmation::stale;
    if (!seen_.insert(event.event_id).second) return Confirmation::duplicate;
    accepted.push_back(std::move(event));
    return Confirmation::accepted;
  }
  Clock& clock_;
  std::set<std::string> seen_;
};

// The disk that processes share; a FakeSpool is one process's view of it.
struct FakeDisk {
  struct Log {
    std::deque<CameraEvent> events;
    std::uint64_t first = 0;
    const void* writer = nullptr;
  };
  std::map<std::pair<CameraId, lease::Tenure>, Log> logs;
  bool full = false;
};

class FakeSpool final : public Spool {
 public:
  explicit FakeSpool(FakeDisk& disk) : disk_(disk) {}
  ~FakeSpool() override {
    for (auto& [key, log] : disk_.logs)
      if (log.writer == this) log.writer = nullptr;
  }

  Result<SpoolBacklog> open(const CameraId& camera, const lease::Tenure& tenure) override {
    auto at = disk_.logs.find({camera, tenure});
    if (at == disk_.logs.end()) return SpoolBacklog{};
    if (!free(at->second)) return Error{Errc::conflict, "spool_in_use", "in use"};
    at->second.writer = this;
    return SpoolBacklog{at->second.events.size(), at->second.events.back().captured};
  }
  bool append(const CameraId& camera, const lease::Tenure& tenure, const CameraEvent& event) override {
    auto at = disk_.logs.find({camera, tenure});
    counts_.disk_trouble = disk_.full;
    if (disk_.full || (at != disk_.logs.end() && !free(at->second))) {
      ++counts_.refused;
      return false;
    }
    auto& log = disk_.logs[{camera, tenure}];
    log.writer = this;
    log.events.push_back(event);
    unflushed = true;
    return true;
  }
  SpoolPage peek(const CameraId& camera, const lease::Tenure& tenure, size_t events_max, size_t) override {
    auto at = disk_.logs.find({camera, tenure});
    if (at == disk_.logs.end() || at->second.writer != this) return {};
    auto& [events, first, writer] = at->second;
    events_max = std::min<size_t>(events_max, 50 - first % 50);  // a page may end early, as at the end of a file
    return {first, {events.begin(), events.begin() + static_cast<std::ptrdiff_t>(std::min(events_max, events.size()))}};
  }
  void advance(const CameraId& camera, const lease::Tenure& tenure, std::uint64_t to) override {
    auto at = disk_.logs.find({camera, tenure});
    if (at == disk_.logs.end() || at->second.writer != this) return;
    for (; at->second.first < to && !at->second.events.empty(); ++at->second.first) at->second.events.pop_front();
    if (at->second.events.empty()) disk_.logs.erase(at);
  }
  void close(const CameraId& camera, const lease::Tenure& tenure) override {
    auto at = disk_.logs.find({camera, tenure});
    if (at != disk_.logs.end() && at->second.writer == this) at->second.writer = nullptr;
  }
  Status flush() override {
    ++flushes;
    unflushed = false;
    return ok();
  }
  Status adopt(const CameraId& camera, const lease::Tenure& from, const lease::Tenure& to) override {
    auto at = disk_.logs.find({camera, from});
    if (at == disk_.logs.end()) return ok();
    if (!free(at->second) || disk_.logs.contains({camera, to})) return Error{Errc::conflict, "spool_in_use", "in use"};
    auto node = disk_.logs.extract(at);
    node.key().second = to;
    node.mapped().writer = this;
    disk_.logs.insert(std::move(node));
    return ok();
  }
  std::uint64_t drop(const CameraId& camera, const lease::Tenure& tenure) override {
    auto at = disk_.logs.find({camera, tenure});
    if (at == disk_.logs.end() || !free(at->second)) return 0;
    auto events = at->second.events.size();
    disk_.logs.erase(at);
    return events;
  }
  std::uint64_t drop_others(const CameraId& camera, const lease::Tenure& keep) override {
    std::uint64_t dropped = 0;
    for (const SpoolContent& each : list())
      if (each.camera == camera && each.tenure != keep) dropped += drop(camera, each.tenure);
    return dropped;
  }
  std::vector<SpoolContent> list() const override {
    std::vector<SpoolContent> all;
    for (const auto& [key, log] : disk_.logs) all.push_back({key.first, key.second, 0, log.writer != nullptr});
    return all;
  }
  SpoolCounts counts() const override { return counts_; }

  int flushes = 0;
  bool unflushed = false;

 private:
  bool free(const FakeDisk::Log& log) const { return log.writer == nullptr || log.writer == this; }
  FakeDisk& disk_;
  SpoolCounts counts_;
};

}  // namespace weir::worker
