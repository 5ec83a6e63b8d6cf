#include "houses.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>

namespace weir::test {

namespace asio = boost::asio;

PlaneHouse::PlaneHouse(asio::io_context& io) : loop(io) {
  plane.add_routes(router);
  server = std::make_unique<net::HttpServer>(io, clock, router, net::ServerLimits{});
  EXPECT_TRUE(server->listen("127.0.0.1:0"));
  asio::co_spawn(io, plane.ticker(),
                 asio::bind_cancellation_slot(stop.slot(), [this](std::exception_ptr) { ticking = false; }));
}

PlaneHouse::~PlaneHouse() {
  stop.emit(asio::cancellation_type::all);
  bool stopped = false;
  asio::co_spawn(loop, server->stop(0s), [&](std::exception_ptr) { stopped = true; });
  EXPECT_TRUE(eventually(10s, [&] {
    loop.restart();
    loop.poll();
    return stopped && !ticking;
  }));
}

std::unique_ptr<http_bus::HttpBus> PlaneHouse::connect(asio::io_context& io, net::Role role) {
  net::Claims claims{"r1", role};
  claims.expires = wall_now() + 1h;
  return *http_bus::HttpBus::create(io, {.base_url = "http://" + server->address(), .token = key.sign(claims)});
}

lease::Version PlaneHouse::grant() {
  camera::Config config;
  config.camera = CameraId::trusted("c1");
  config.tenant = TenantId::trusted("t1");
  config.site = SiteId::trusted("s1");
  config.rtsp_url = Secret("rtsp://camera.example/stream");
  asio::io_context io;
  EXPECT_TRUE(test::run(io, store.add_tenant({config.tenant, "One"})));
  EXPECT_TRUE(test::run(io, store.add_site({config.site, config.tenant, "Site", {2, 2, 60}})));
  EXPECT_TRUE(test::run(io, store.add_camera(config)));
  lease::Batch ask{
      lease::Operation::acquire, {RunnerId::trusted("r1"), BootId()}, 60s, {{.subject = config.camera, .key = "k"}}};
  return store.apply_now(ask).answers.front().version;
}

BusHouse::BusHouse(BusKind of) : kind(of) {
  if (kind == BusKind::fake) {
    bus = std::make_unique<worker::FakeBus>(clock);
    return;
  }
  if (kind == BusKind::http) {
    plane = std::make_unique<PlaneHouse>(io);
    version = plane->grant();
    bus = plane->connect(io, net::Role::runner);
    return;
  }
  auto broker = RabbitServer::shared();
  if (!broker) {
    EXPECT_EQ(broker.error().reason, "no_rabbitmq") << broker.error().message;  // or it is there and does not start
    unavailable = broker.error().message;
    return;
  }
  url = (*broker)->new_url();
  bus = connect();
}

std::unique_ptr<EventBus> BusHouse::connect() {
  if (kind == BusKind::http) return plane->connect(io, net::Role::admin);
  if (kind == BusKind::rabbitmq) return std::make_unique<rabbitmq::RabbitBus>(io, patient());
  return nullptr;
}

event::Event BusHouse::event(const std::string& id, Instant deadline, const std::string& fill) const {
  std::string payload = fmt::format(R"({{"event_id":"{}","camera_uuid":"c1","tenant_id":"t1","site_id":"s1",)"
                                    R"("lease_version":{},"fill":"{}"}})",
                                    id, version.n, fill);
  return {.topic = std::string(event::kDetectionsTopic),
          .routing_key = "detections.t1.s1.c1",
          .event_id = id,
          .payload = std::move(payload),
          .stamp = event::Stamp{CameraId::trusted("c1"), version, deadline}};
}

namespace {
asio::awaitable<void> follow(EventBus& bus, Subscription subscription, std::function<bool(const DeliveredEvent&)> each,
                             std::shared_ptr<BusListener::Heard> heard) {
  heard->ended = co_await bus.subscribe(std::move(subscription), std::move(each));
}
}  // namespace

BusListener::BusListener(BusHouse& in, Subscription subscription, size_t most) : house(in), bus(in.connect()) {
  auto each = [heard = heard, most](const DeliveredEvent& event) {
    heard->events.push_back(event);
    return heard->events.size() < most;
  };
  asio::co_spawn(house.io, follow(*bus, std::move(subscription), each, heard), asio::detached);
}

std::vector<std::string> BusListener::ids() const {
  std::vector<std::string> out;
  for (const DeliveredEvent& each : heard->events) {
    auto payload = json::parse_text(each.payload);
    out.emplace_back(payload ? payload->at("event_id").as_string() : "unreadable");
  }
  return out;
}

}  // namespace weir::test
