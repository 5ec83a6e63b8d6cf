// House: one implementation of Coordination, ready to use and empty. Main thread only.
#pragma once

#include "redis_server.hpp"
#include "run.hpp"
#include "stall.hpp"

#include "weir/in_process/coordination.hpp"
#include "weir/redis/coordination.hpp"

#include <gtest/gtest.h>

namespace weir::test {

enum class House { in_process, redis };

struct CoordinationHouse {
  explicit CoordinationHouse(House kind, int detections_max = 10'000, size_t heard_max = 10'000) {
    if (kind == House::in_process) {
      made = in_process::make_coordination(io.get_executor(),
                                           {.detections_max = static_cast<size_t>(detections_max),
                                            .heard_max = heard_max});
      return;
    }
    auto started = RedisServer::start(Secret("canary-of-the-test"));
    if (!started) {
      EXPECT_EQ(started.error().reason, "no_redis") << started.error().message;  // or it is there and does not start
      unavailable = started.error().message;
      return;
    }
    server = *std::move(started);
    made = connect(detections_max, heard_max);
  }
  // Another process's view of the same Redis.
  std::unique_ptr<Coordination> connect(int detections_max = 10'000, size_t heard_max = 10'000) {
    return redis::make_coordination(io.get_executor(), {.host = "127.0.0.1",
                                                        .port = server->port(),
                                                        .password = Secret("canary-of-the-test"),
                                                        .heard_max = heard_max,
                                                        .detections_max = detections_max});
  }
  template <class T>
  T run(boost::asio::awaitable<T> what) {
    return test::run(io, std::move(what));
  }
  // Lets the loop work until the condition holds.
  bool until(const std::function<bool()>& condition, Duration limit = 20s) {
    return eventually(limit, [&] {
      io.restart();
      io.poll();
      return condition();
    });
  }

  std::string unavailable;  // why it cannot be tested here
  boost::asio::io_context io;
  std::unique_ptr<RedisServer> server;
  std::unique_ptr<Coordination> made;
};

template <class T>
boost::asio::awaitable<void> answered(Async<T> what, std::function<void(Result<T>)> then) {
  then(co_await std::move(what));
}
// Begins something without waiting for it; `then` gets the answer.
template <class T>
void begin(boost::asio::io_context& io, Async<T> what, std::function<void(Result<T>)> then) {
  boost::asio::co_spawn(io, answered<T>(std::move(what), std::move(then)),
                        [](const std::exception_ptr& failed) { EXPECT_FALSE(failed); });
}

// What one listener heard.
struct Listener {
  Listener(Coordination& on, std::vector<std::string> channels) {
    listening = on.listen(std::move(channels), [this](const Heard& heard) {
      if (heard.begun) ++begun;
      else texts.push_back(heard.channel + "=" + heard.text);
    });
  }
  int begun = 0;
  std::vector<std::string> texts;
  std::unique_ptr<Listening> listening;
};

}  // namespace weir::test
