// ShardConfig: what a worker is told when it starts: for which runner it works, which cameras it has, where events go.
//
// The document is the shard document of docs/worker.md; a source may carry everything else that is known about its camera
// (zones, thresholds, decode mode …). It is validated completely before anything connects, and every problem is named
// with its path, never with its value. A manager writes the same document (`write_shard_config`) and the same elements
// of it in later messages (message.hpp). Plain values and pure functions; any thread.
#pragma once

#include "weir/base/json.hpp"
#include "weir/base/time.hpp"
#include "weir/camera/config.hpp"
#include "weir/lease/row.hpp"
#include "weir/link/broker.hpp"

#include <optional>
#include <string>
#include <vector>

namespace weir::link {

// The right to speak for a camera, as a manager hands it over: only absolute instants cross the process boundary.
struct LeaseGrant {
  CameraId camera;
  lease::Version version;
  lease::Tenure tenure;
  Instant valid_until{};                    // on this machine's CLOCK_BOOTTIME
  std::optional<lease::Tenure> adopt = {};  // the tenure whose spool may be taken over
  std::optional<WallTime> after = {};       // nothing captured at or before this may be emitted
  bool extends = false;                     // it only prolongs: a worker that was asked to be silent stays silent
};

struct Source {
  camera::Config config;     // rtsp_url holds whatever is dialled: rtsp, rtsps or file
  bool snapshots = false;    // pictures come from config.snapshot, not from a stream
  std::optional<LeaseGrant> lease = {};

  // Whether a worker can go from one source to the other without a new connection.
  bool same_dial(const Source& other) const;
};

struct ShardConfig {
  RunnerId runner;
  std::string shard = "shard-0";
  double max_fps = 6;                        // of sources that say nothing else
  std::vector<Source> sources = {};
  std::string control_plane = {};            // base URL of the bus, or several with commas; "" where events are printed
  Secret token = {};
  std::optional<Broker> broker = {};         // where events go instead
  std::optional<double> report_interval_s = {};
  std::vector<camera::Model> preload = {};   // loaded before the first picture asks for them
  bool standby = false;                      // decode and be ready, but say nothing until activated
  Secret control_token = {};                 // for the local endpoints; made by the worker where absent
  std::string dials_file = {};               // by which the workers of a runner share the limit on dials
  std::string crash_file = {};               // where the camera of a crashed thread is written
};

Result<ShardConfig> read_shard_config(const json::value& document);
// One element of "sources", for a live add; `max_fps` is the shard's.
Result<Source> read_source(const json::value& document, double max_fps);
// {"items":[{camera_uuid, version, grant_version, boot_id, valid_until_us, adopt?, after?}]}
Result<std::vector<LeaseGrant>> read_leases(const json::value& document);
json::object write_shard_config(const ShardConfig& shard);
json::object write_source(const Source& source);
json::object write_lease(const LeaseGrant& lease);

}  // namespace weir::link
