// HttpBus: the control plane's own event bus, over HTTP. The other end is event_routes.cpp of services/control_plane,
// which appends to EventLog.
//
// Publishing sends the batch in as few requests as the server's limit on bodies allows, one after the other, so that
// the order is kept; each is written only while every deadline in it lies ahead, and what the kernel has not sent when
// the connection is closed is thrown away. An error means that nothing is known about any event of the batch.
// Subscribing follows the server-sent events; the caller resumes with the last cursor it saw.
// One loop thread a bus; the bus must outlive its running calls.
#pragma once

#include "weir/base/secret.hpp"
#include "weir/net/client.hpp"
#include "weir/ports/event_bus.hpp"

#include <memory>
#include <span>

namespace weir::http_bus {

struct Config {
  std::string base_url;             // of the control plane; or several, with commas between
  Secret token = {};                // of a worker or a runner
  std::string token_file = {};      // where the token stands instead; read before each publication, because it is
                                    // renewed there
  Duration timeout = 5s;            // for one request
  Duration silence = 45s;           // a stream that says nothing for this long is gone; it is kept alive every 15 s
  size_t body_bytes_max = 900'000;  // below the server's limit
  size_t items_max = 1000;
  std::string ca_file = {};         // authorities besides the system's, for https
};

class HttpBus final : public EventBus {
 public:
  static Result<std::unique_ptr<HttpBus>> create(boost::asio::io_context& io, Config config);

  // The token counts from the next request on.
  void set_token(Secret token) { config_.token = std::move(token); }
  Status use(const std::string& base_url) { return client_.use(base_url); }

  boost::asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override;
  boost::asio::awaitable<Status> subscribe(Subscription subscription,
                                           std::function<bool(const DeliveredEvent&)> each) override;

 private:
  HttpBus(Config config, net::HttpClient client) : config_(std::move(config)), client_(std::move(client)) {}
  boost::asio::awaitable<Status> send(std::span<const event::Event> events, std::string body,
                                      std::vector<Confirmation>& answers);
  void read_token_file();

  Config config_;
  net::HttpClient client_;
};

}  // namespace weir::http_bus
