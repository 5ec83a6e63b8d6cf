// Address: where a RabbitMQ broker is, and as whom Weir speaks with it. Plain value; any thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"

#include <string>
#include <string_view>

namespace weir::rabbitmq {

struct Address {
  std::string host = "localhost";
  int port = 5672;
  std::string vhost = "/";
  std::string user = "guest";
  Secret password = Secret("guest");
  bool tls = false;
  friend bool operator==(const Address&, const Address&) = default;
};

// "amqp://user:password@host:5672/vhost", or amqps:// for TLS; each part may be percent-encoded, and all but the host
// may be left out. The error does not repeat the URL.
Result<Address> read_address(std::string_view url);
// For logs and messages: "host:5672/vhost", without the credentials.
std::string shown(const Address& address);

}  // namespace weir::rabbitmq
