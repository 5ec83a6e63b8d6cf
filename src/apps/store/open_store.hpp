// The store that a URL names: the one place where a choice of adapter is made.
// An OpenStore belongs to the loop's thread; destroying it joins the store's own threads.
#pragma once

#include "weir/base/secret.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/keys.hpp"
#include "weir/ports/lease_store.hpp"
#include "weir/ports/pictures.hpp"

#include <memory>
#include <string>

namespace weir::apps {

struct OpenStore {
  std::shared_ptr<void> owner;  // one object behind all ports
  LeaseStore* leases = nullptr;
  Catalog* catalog = nullptr;
  EventLog* events = nullptr;
  Keys* keys = nullptr;
  Pictures* pictures = nullptr;
  std::string kind;   // "sqlite", "postgres"
  std::string shown;  // the URL without credentials
};

// sqlite:PATH or postgres://… (postgresql://…).
Result<OpenStore> open_store(const Secret& url, int pool_size, LeaseLimits limits);

}  // namespace weir::apps
