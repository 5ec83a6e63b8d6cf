// Which RabbitMQ broker events go to: as settings name it, as a shard document does, and as the adapter takes it. Plain
// functions; any thread.
#pragma once

#include "weir/base/settings.hpp"
#include "weir/link/broker.hpp"
#include "weir/rabbitmq/rabbit_bus.hpp"

namespace weir::apps {

// Nothing where the settings name none: events go to the control plane.
Result<std::optional<link::Broker>> event_broker(const Settings& settings);
rabbitmq::Config rabbitmq_config(const link::Broker& broker);

}  // namespace weir::apps
