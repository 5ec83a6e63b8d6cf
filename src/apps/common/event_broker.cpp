#include "common/event_broker.hpp"

namespace weir::apps {

Result<std::optional<link::Broker>> event_broker(const Settings& settings) {
  Secret url = settings.secret("events");
  if (url.empty()) return std::optional<link::Broker>();
  auto address = rabbitmq::read_address(url.reveal());
  if (!address) return settings.refused("events", address.error().message.substr(std::string_view("must be ").size()));
  return std::optional<link::Broker>({.host = address->host,
                                      .port = address->port,
                                      .vhost = address->vhost,
                                      .user = address->user,
                                      .password = address->password,
                                      .tls = address->tls,
                                      .ca_file = settings.text("events_ca_file")});
}

rabbitmq::Config rabbitmq_config(const link::Broker& broker) {
  int usual = broker.tls ? 5671 : 5672;
  return {.address = {.host = broker.host,
                      .port = broker.port == 0 ? usual : broker.port,
                      .vhost = broker.vhost,
                      .user = broker.user,
                      .password = broker.password,
                      .tls = broker.tls},
          .ca_file = broker.ca_file,
          .exchanges = {{std::string(event::kDetectionsTopic), broker.ex_detect},
                        {std::string(event::kStatusTopic), broker.ex_status},
                        {std::string(event::kControlTopic), broker.ex_control}}};
}

}  // namespace weir::apps
