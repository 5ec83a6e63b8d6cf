// For the cluster's tests: detection workers that do what the test says, in virtual time. One thread.
#pragma once

#include "weir/base/spawn.hpp"
#include "weir/cluster/worker_protocol.hpp"
#include "weir/ports/detector_link.hpp"
#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <set>

namespace weir::cluster::testing {

namespace asio = boost::asio;

// A worker as the test wants it to be. It goes on while nobody is connected to it.
struct FakeWorker {
  bool up = true;          // answers dials
  bool silent = false;     // sends no state report
  bool obedient = true;    // runs what it is given
  double cpu_percent = 10;
  std::set<std::string> runs = {};
  std::deque<std::string> outbox = {};
  std::vector<std::string> heard = {};  // the types of commands, with their subscription
  std::string picture = {};             // of every camera, whose name follows
  int connections = 0;
  std::uint64_t connection = 0;         // the present one; 0: none

  void say(const Message& message) { outbox.push_back(json::to_text(write_message(message))); }
  void report() {
    StateReport now{.cpu_percent = cpu_percent, .memory_percent = 20};
    for (const std::string& each : runs)
      now.cameras.push_back({.subscription = *Identifier::parse(each), .model_id = 7, .model_name = "cars"});
    say(now);
  }
  void hear(const std::string& text) {
    auto command = read_command(text);
    ASSERT_TRUE(command) << text;
    if (const auto* given = std::get_if<Subscribe>(&*command)) {
      heard.push_back("subscribe " + given->subscription.text());
      if (obedient) runs.insert(given->subscription.text());
    } else if (const auto* taken = std::get_if<Unsubscribe>(&*command)) {
      heard.push_back("unsubscribe " + taken->subscription.text());
      runs.erase(taken->subscription.text());
    } else if (const auto* session = std::get_if<SetSessionId>(&*command)) {
      heard.push_back(fmt::format("session {}={}", session->display, session->session.value_or(0)));
    } else if (const auto* result = std::get_if<PatchSessionResult>(&*command)) {
      heard.push_back(fmt::format("patched {} {}", result->session, result->success));
    } else if (!silent) {
      report();
    }
  }
  size_t times(const std::string& command) const {
    return static_cast<size_t>(std::ranges::count(heard, command));
  }
};

class FakeSocket final : public WorkerSocket {
 public:
  FakeSocket(Clock& clock, std::shared_ptr<FakeWorker> worker) : clock_(clock), worker_(std::move(worker)) {
    number_ = worker_->connection = static_cast<std::uint64_t>(++worker_->connections);
    worker_->outbox.clear();
  }
  ~FakeSocket() override { cut(); }
  asio::awaitable<std::optional<std::string>> receive() override {
    auto worker = worker_;
    Clock& clock = clock_;
    for (std::uint64_t mine = number_; worker->up && worker->connection == mine;) {
      if (!worker->outbox.empty()) {
        std::string text = std::move(worker->outbox.front());
        worker->outbox.pop_front();
        co_return text;
      }
      co_await clock.wait(10ms);
    }
    co_return std::nullopt;
  }
  Status post(std::string text) override {
    if (!worker_->up || worker_->connection != number_) return Error{Errc::unavailable, "gone", "the worker is gone"};
    worker_->hear(text);
    return ok();
  }
  void cut() override {
    if (worker_->connection == number_) worker_->connection = 0;
  }
  std::string reason() const override { return "the connection broke"; }
  bool orderly() const override { return false; }

 private:
  Clock& clock_;
  std::shared_ptr<FakeWorker> worker_;
  std::uint64_t number_ = 0;
};

class FakeLink final : public DetectorLink {
 public:
  explicit FakeLink(Clock& clock) : clock_(clock) {}
  Async<std::unique_ptr<WorkerSocket>> dial(std::string url) override {
    auto worker = workers.at(url);
    co_await clock_.wait(5ms);
    if (!worker->up) co_return Error{Errc::unavailable, "refused", "nobody answers"};
    co_return std::unique_ptr<WorkerSocket>(new FakeSocket(clock_, worker));
  }
  Async<WorkerPicture> picture(std::string url, std::string camera) override {
    auto worker = workers.at(url);
    co_await clock_.wait(5ms);
    if (!worker->up) co_return Error{Errc::unavailable, "refused", "nobody answers"};
    if (worker->picture.empty()) co_return Error{Errc::not_found, "no_picture", "no picture of that camera yet"};
    co_return WorkerPicture{worker->picture + camera, "2026-01-31T09:05:07.123Z"};
  }
  FakeWorker& add(const std::string& url) {
    auto& worker = workers[url] = std::make_shared<FakeWorker>();
    return *worker;
  }
  std::map<std::string, std::shared_ptr<FakeWorker>> workers;

 private:
  Clock& clock_;
};

inline DesiredSubscription wanted(const std::string& id, std::int64_t model = 7) {
  DesiredSubscription out;
  out.id = *Identifier::parse(id);
  out.rtsp_url = Secret("rtsp://camera.example/" + out.id.camera);
  out.model_id = model;
  out.model_name = "cars";
  return out;
}

}  // namespace weir::cluster::testing
