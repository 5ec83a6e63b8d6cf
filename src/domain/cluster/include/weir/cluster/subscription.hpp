// Subscription: one camera on one display, as the cluster wants it detected for.
//
// It is named "displayId;cameraId". The text has exactly one semicolon; both ids follow the rules of every id. Plain
// values; any thread.
#pragma once

#include "weir/base/json.hpp"
#include "weir/base/time.hpp"

#include <compare>
#include <map>

namespace weir::cluster {

struct Identifier {
  std::string display, camera;

  std::string text() const { return display + ";" + camera; }
  static Result<Identifier> parse(std::string_view text);
  friend auto operator<=>(const Identifier&, const Identifier&) = default;
};
void read_value(const json::value& v, Identifier& out, const std::string& path, json::Context& ctx);
json::value write_value(const Identifier& v);

// A part of the picture, in pixels.
struct Crop {
  int x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  friend bool operator==(const Crop&, const Crop&) = default;
};

struct DesiredSubscription {
  Identifier id;
  TenantId tenant = {};
  Secret rtsp_url;                                             // may hold a password
  std::optional<Secret> snapshot_url = {};                     // the same
  std::optional<std::chrono::milliseconds> snapshot_every = {};
  std::int64_t model_id = 0;
  std::string model_name = {};
  std::string model_checksum = {};
  std::optional<Crop> crop = {};
  WallTime created_at{};

  // Differs wherever a worker must be told of the subscription anew. It is computed from the credentials too, and so
  // never leaves the process.
  std::uint64_t revision() const;
  friend bool operator==(const DesiredSubscription&, const DesiredSubscription&) = default;
};

using DesiredSubscriptions = std::map<std::string, DesiredSubscription>;  // by the identifier's text

}  // namespace weir::cluster
