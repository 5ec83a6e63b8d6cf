// WsLink: the port DetectorLink over WebSocket and HTTP, as detection workers serve them. Loop thread only.
#pragma once

#include "weir/base/secret.hpp"
#include "weir/net/web_socket.hpp"
#include "weir/ports/detector_link.hpp"

#include <boost/asio/io_context.hpp>

namespace weir::ws_detector {

struct Config {
  Secret token = {};  // shown to every worker; empty: none
  Duration dial_within = 8s;
  Duration picture_within = 5s;
  size_t picture_bytes_max = 8 << 20;
  net::WebSocketLimits limits = {};
  std::string ca_file = {};  // authorities besides the system's, for wss
};

class WsLink final : public DetectorLink {
 public:
  WsLink(boost::asio::io_context& io, Config config) : io_(io), config_(std::move(config)) {}
  Async<std::unique_ptr<WorkerSocket>> dial(std::string worker) override;
  Async<WorkerPicture> picture(std::string worker, std::string camera) override;

 private:
  boost::asio::io_context& io_;
  const Config config_;
};

}  // namespace weir::ws_detector
