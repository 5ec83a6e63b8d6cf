#include "weir/rabbitmq/address.hpp"

#include <amqp.h>
#include <fmt/format.h>

namespace weir::rabbitmq {

Result<Address> read_address(std::string_view url) {
  Error bad{Errc::invalid, "bad_amqp_url", "must be amqp://USER:PASSWORD@HOST:PORT/VHOST, or amqps:// for TLS"};
  std::string text(url);  // the library decodes in place
  amqp_connection_info found;
  if (text.find_first_of("?#") != std::string::npos || amqp_parse_url(text.data(), &found) != AMQP_STATUS_OK)
    return bad;
  Address out{.host = found.host,
              .port = found.port,
              .vhost = *found.vhost == '\0' ? "/" : found.vhost,
              .user = found.user,
              .password = Secret(found.password),
              .tls = found.ssl != 0};
  if (out.host.empty() || out.port <= 0 || out.port > 65535) return bad;
  return out;
}

std::string shown(const Address& address) {
  std::string vhost = address.vhost == "/" ? "" : "/" + address.vhost;
  return fmt::format("{}:{}{}", address.host, address.port, vhost);
}

}  // namespace weir::rabbitmq
