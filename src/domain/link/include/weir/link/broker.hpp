// Broker: the RabbitMQ broker that a worker publishes to, as `amqp` in its shard document names it. Plain value; any
// thread.
#pragma once

#include "weir/base/json.hpp"
#include "weir/base/secret.hpp"

#include <string>

namespace weir::link {

struct Broker {
  std::string host;
  int port = 0;  // 0: the usual one
  std::string vhost = "/";
  std::string user = "guest";
  Secret password = Secret("guest");
  bool tls = false;
  std::string ca_file = {};  // authorities (PEM) that are believed besides the system's
  std::string ex_detect = "detections.topic", ex_status = "status.topic", ex_control = "control.topic";
  friend bool operator==(const Broker&, const Broker&) = default;
};
template <class V>
void fields(V& v, Broker& b) {
  v.required("host", b.host, json::length(1, 255));
  v.optional("port", b.port, json::range(0, 65535));
  v.optional("vhost", b.vhost, json::length(1, 255));
  v.optional("user", b.user, json::length(1, 255));
  v.optional("password", b.password);
  v.optional("tls", b.tls);
  v.optional("ca_file", b.ca_file);
  v.optional("ex_detect", b.ex_detect, json::length(1, 127));
  v.optional("ex_status", b.ex_status, json::length(1, 127));
  v.optional("ex_control", b.ex_control, json::length(1, 127));
}

}  // namespace weir::link
