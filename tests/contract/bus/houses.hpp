// BusHouse: one implementation of EventBus, ready to use and empty, with somebody who may publish for camera c1. Main
// thread only.
//
// The HTTP bus speaks with a control plane in this process, over the fake store; RabbitBus with a real broker; the fake
// is the one of the publisher's tests, which no one can subscribe to.
#pragma once

#include "fake_model_disk.hpp"
#include "fake_store.hpp"
#include "publisher_testing.hpp"
#include "rabbit_server.hpp"
#include "run.hpp"
#include "stall.hpp"

#include "weir/control_plane/control_plane.hpp"
#include "weir/http_bus/http_bus.hpp"
#include "weir/net/server.hpp"
#include "weir/ports/pictures.hpp"
#include "weir/rabbitmq/rabbit_bus.hpp"

#include <gtest/gtest.h>

namespace weir::test {

enum class BusKind { http, rabbitmq, fake };

// A control plane over the fake store, with its server.
struct PlaneHouse {
  explicit PlaneHouse(boost::asio::io_context& io);
  ~PlaneHouse();
  std::unique_ptr<http_bus::HttpBus> connect(boost::asio::io_context& io, net::Role role);
  lease::Version grant();  // camera c1 of tenant t1 and site s1, to runner r1

  RealClock clock;
  net::Metrics metrics;
  FakeStore store{wall_now};
  MemoryPictures pictures;
  FakeModelDisk models;
  net::TokenKey key = *net::TokenKey::create(Secret(std::string(32, 'k')));
  control_plane::ControlPlane plane{store, store, store, store, pictures, models, clock, key, metrics, {}};
  net::Router router;
  std::unique_ptr<net::HttpServer> server;
  boost::asio::cancellation_signal stop;
  bool ticking = true;
  boost::asio::io_context& loop;
};

struct BusHouse {
  explicit BusHouse(BusKind of);
  // Another process's view of the same bus; null where nobody can subscribe.
  std::unique_ptr<EventBus> connect();
  // On a busy machine a broker may take its time.
  rabbitmq::Config patient() const {
    return {.address = *rabbitmq::read_address(url), .connect_within = 10s, .answer_within = 30s};
  }
  event::Event event(const std::string& id, Instant deadline = Instant::max(), const std::string& fill = "") const;

  // Lets the loop work until the condition holds.
  bool until(const std::function<bool()>& condition, Duration limit = 30s) {
    return eventually(limit, [&] {
      io.restart();
      io.poll();
      return condition();
    });
  }
  template <class T>
  T run(boost::asio::awaitable<T> what) {
    std::optional<T> out;
    auto keep = [](boost::asio::awaitable<T> from, std::optional<T>& to) -> boost::asio::awaitable<void> {
      to = co_await std::move(from);
    };
    boost::asio::co_spawn(io, keep(std::move(what), out), [](std::exception_ptr thrown) { EXPECT_FALSE(thrown); });
    EXPECT_TRUE(until([&] { return out.has_value(); }));
    return out ? *std::move(out) : T(Error{Errc::internal, "hangs", "it does not end"});
  }

  const BusKind kind;
  std::string unavailable;  // why it cannot be tested here
  boost::asio::io_context io{1};
  RealClock clock;
  lease::Version version{7};
  std::unique_ptr<PlaneHouse> plane;
  std::string url;  // the broker's
  std::unique_ptr<EventBus> bus;
};

// Somebody who subscribes and keeps what is delivered. It ends its subscription after `most` events.
struct BusListener {
  BusListener(BusHouse& in, Subscription subscription, size_t most = 1'000'000);
  std::vector<std::string> ids() const;

  BusHouse& house;
  std::unique_ptr<EventBus> bus;
  struct Heard {
    std::vector<DeliveredEvent> events;
    std::optional<Status> ended;
  };
  const std::shared_ptr<Heard> heard = std::make_shared<Heard>();
};

}  // namespace weir::test
