// Catalog: what a store knows besides leases and events: its sites, cameras, runners and streams, and what detector
// clusters shall look at.
//
// One store implements them all. A caller that needs one of them takes that port alone; the whole is for the code
// that opens a store and hands its parts out. Loop thread only.
#pragma once

#include "weir/ports/cameras.hpp"
#include "weir/ports/displays.hpp"
#include "weir/ports/models.hpp"
#include "weir/ports/runners.hpp"
#include "weir/ports/sites.hpp"
#include "weir/ports/store_errors.hpp"
#include "weir/ports/streams.hpp"

namespace weir {

// Tells whether the store answers at all.
class StoreHealth {
 public:
  virtual ~StoreHealth() = default;
  virtual Async<Nothing> ping() = 0;
};

class Catalog : public StoreHealth,
                public Sites,
                public Cameras,
                public Runners,
                public Streams,
                public Models,
                public Displays {};

}  // namespace weir
