// FakeRedis: what the processes of a cluster share, in memory, and each process's faulty way to it.
//
// It keeps the promises of Coordination by the implementation in src/adapters/in_process. It can forget everything, as a
// Redis that was restarted does, and be away for all processes or for one. A process can be slow to reach it. One
// thread.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/ports/coordination.hpp"

#include <memory>
#include <set>
#include <vector>

namespace weir::test {

class FakeRedis {
 public:
  FakeRedis(boost::asio::io_context& io, Clock& clock);
  ~FakeRedis();
  FakeRedis(const FakeRedis&) = delete;

  // One process's way to it. It outlives none of its coroutines.
  class Way;
  std::unique_ptr<Way> connect();

  // Everything is gone; whoever listens is interrupted for a moment.
  void empty();
  void set_away(bool away);
  Coordination& kept() { return *kept_.back(); }

 private:
  boost::asio::io_context& io_;
  Clock& clock_;
  std::vector<std::unique_ptr<Coordination>> kept_;  // the last one is in use; an earlier one may still be asked
  std::set<Way*> ways_;
  bool away_ = false;
};

class FakeRedis::Way final : public Coordination {
 public:
  explicit Way(FakeRedis& redis) : redis_(redis) { redis_.ways_.insert(this); }
  ~Way() override { redis_.ways_.erase(this); }

  void set_away(bool away);
  Duration slow{};                    // what each answer takes
  std::vector<std::int64_t> written;  // the epoch of each write, publication and delivery that was taken

  Async<Nothing> open_epoch(std::int64_t epoch) override { return ask(redis_.kept().open_epoch(epoch)); }
  Async<Nothing> write(std::int64_t epoch, std::vector<TableChange> changes) override {
    return under(epoch, redis_.kept().write(epoch, std::move(changes)));
  }
  Async<Nothing> publish(std::int64_t epoch, std::string channel, std::string text) override {
    return under(epoch, redis_.kept().publish(epoch, std::move(channel), std::move(text)));
  }
  Async<std::string> deliver(std::int64_t epoch, std::string channel, std::string text) override {
    return under(epoch, redis_.kept().deliver(epoch, std::move(channel), std::move(text)));
  }
  Async<Nothing> put_slave(std::string slave, std::string record) override {
    return ask(redis_.kept().put_slave(std::move(slave), std::move(record)));
  }
  Async<Nothing> remove_slave(std::string slave) override { return ask(redis_.kept().remove_slave(std::move(slave))); }
  Async<Nothing> tell(std::string channel, std::string text) override {
    return ask(redis_.kept().tell(std::move(channel), std::move(text)));
  }
  Async<std::optional<std::int64_t>> epoch() override { return ask(redis_.kept().epoch()); }
  Async<SharedTable> table(ClusterTable table) override { return ask(redis_.kept().table(table)); }
  Async<std::optional<std::string>> entry(ClusterTable table, std::string field) override {
    return ask(redis_.kept().entry(table, std::move(field)));
  }
  Async<DetectionPage> detections_after(std::string id, int limit) override {
    return ask(redis_.kept().detections_after(std::move(id), limit));
  }
  std::unique_ptr<Listening> listen(std::vector<std::string> channels, std::function<void(const Heard&)> each) override;

 private:
  friend class FakeRedis;
  class Ear;
  bool away() const { return away_ || redis_.away_; }
  void interrupt();  // listeners hear nothing until this way is open, and then that they listen again

  // What is asked is begun only when it is waited for, so a question that is not answered was never asked.
  template <class T>
  Async<T> ask(Async<T> question) {
    co_await redis_.clock_.wait(away() ? std::max<Duration>(slow, 10ms) : slow);
    if (away()) co_return Error{Errc::unavailable, "coordination_unavailable", "Redis is away", {}};
    co_return co_await std::move(question);
  }
  template <class T>
  Async<T> under(std::int64_t epoch, Async<T> question) {
    auto answer = co_await ask(std::move(question));
    if (answer) written.push_back(epoch);
    co_return answer;
  }

  FakeRedis& redis_;
  std::set<Ear*> ears_;
  bool away_ = false;
};

}  // namespace weir::test
