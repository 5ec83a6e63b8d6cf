// A bus that does what a script says, for tests of the publisher. One thread.
#pragma once

#include "fake_spool.hpp"

#include "weir/worker/publisher.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include <set>

namespace weir::worker {

namespace asio = boost::asio;
using test::FakeDisk;
using test::FakeSpool;

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

  asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
    ++requests;
    ++running;
    largest = std::max(largest, events.size());
    at_once = std::max(at_once, running);
    for (const event::Event& event : events) late += clock_.now() >= event.stamp->deadline ? 1 : 0;
    Fate fate = next_fate();
    struct Leave {
      int& running;
      ~Leave() { --running; }
    } leave{running};
    co_await clock_.wait(blocks);  // whatever can block before the bytes are written
    Error nothing{Errc::unavailable, "bus_unavailable", "nobody there"};
    if (fate == Fate::refuse_connection) co_return nothing;
    for (const event::Event& event : events)
      if (event.stamp && clock_.now() >= event.stamp->deadline)
        co_return Error{Errc::unavailable, "deadline_passed", "too late"};
    if (fate == Fate::hang) {
      co_await clock_.wait(std::chrono::hours(1));
      co_return nothing;
    }
    for (const event::Event& event : events)
      if (event.event_id == wrong) co_return Error{Errc::invalid, "bad_event", "an event is wrong"};
    std::vector<Confirmation> answers;
    for (event::Event& event : events) answers.push_back(judge(std::move(event)));
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
    for (const event::Event& event : accepted)
      if (event.stamp->camera == camera) found.push_back(event.event_id);
    return found;
  }

  std::function<Fate()> decide = {};  // where the script has ended
  std::deque<Fate> script;
  Duration blocks{}, answers_after{};
  std::map<CameraId, lease::Version> row;  // the version that is accepted; absent: every one
  std::string wrong = {};
  std::vector<event::Event> accepted;
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
  Confirmation judge(event::Event event) {
    auto at = row.find(event.stamp->camera);
    if (at != row.end() && at->second != event.stamp->version) return Confirmation::stale;
    if (!seen_.insert(event.event_id).second) return Confirmation::duplicate;
    accepted.push_back(std::move(event));
    return Confirmation::accepted;
  }
  Clock& clock_;
  std::set<std::string> seen_;
};

}  // namespace weir::worker
