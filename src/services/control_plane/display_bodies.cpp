#include "display_bodies.hpp"

#include "request.hpp"

#include <charconv>
#include <initializer_list>

namespace weir::control_plane {

namespace {

// Display and camera are told apart at the first semicolon of a subscription's identifier.
std::string display_id_problem(const DisplayId& id) {
  return id.str().find(';') == std::string::npos ? "" : "must not have a semicolon";
}

std::string model_name_problem(const std::string& name) {
  return name.empty() ? "must not be empty" : name_problem(name);
}

std::string metadata_problem(const json::object& metadata) {
  if (json::to_text(metadata).size() <= kMetadataBytesMax) return "";
  return fmt::format("must have at most {} bytes", kMetadataBytesMax);
}

auto model_id_range() { return json::range<ModelId>(1, kModelIdMax); }

}  // namespace

struct DisplayBody {
  DisplayRecord display;
};
template <class V>
void fields(V& v, DisplayBody& b) {
  v.required("display_id", b.display.id, display_id_problem);
  v.optional("tenant_id", b.display.tenant);
  v.optional("name", b.display.name, name_problem);
  v.optional("camera_uuid", b.display.camera);
  v.optional("playlist_id", b.display.playlist);
}

struct PlaylistBody {
  PlaylistRecord playlist;
};
template <class V>
void fields(V& v, PlaylistBody& b) {
  v.required("playlist_id", b.playlist.id);
  v.optional("tenant_id", b.playlist.tenant);
  v.optional("name", b.playlist.name, name_problem);
  v.required("model_id", b.playlist.model, model_id_range());
}

struct ModelBody {
  ModelRecord model;
};
template <class V>
void fields(V& v, ModelBody& b) {
  v.optional("model_id", b.model.id, model_id_range());
  v.optional("tenant_id", b.model.tenant);
  v.required("name", b.model.name, model_name_problem);
  v.optional("metadata", b.model.metadata, metadata_problem);
}

struct SubscriptionBody {
  SubscriptionRecord subscription;
};
template <class V>
void fields(V& v, SubscriptionBody& b) {
  v.required("subscription_identifier", b.subscription.id);
  v.optional("camera_uuid", b.subscription.camera);
  v.required("model_id", b.subscription.model, model_id_range());
  fields(v, b.subscription.options);
}

namespace {

template <class Body>
Result<Body> read_body(json::object body, std::initializer_list<std::string_view> ours) {
  for (std::string_view field : ours) body.erase(field);
  return json::read<Body>(json::value(std::move(body)), json::Unknown::reject);
}

template <class AnyId>
json::value id_or_null(const AnyId& id) {
  return id.empty() ? json::value(nullptr) : json::value(id.str());
}

json::value write_file(const std::optional<ModelFile>& file) {
  if (!file) return nullptr;
  return json::object{{"name", file->name}, {"sha256", file->sha256}, {"bytes", file->bytes}};
}

void add_times(json::object& out, WallTime created_at, WallTime updated_at) {
  out["created_at"] = to_iso(created_at);
  out["updated_at"] = to_iso(updated_at);
}

// The display that an identifier names: what stands before the first semicolon.
std::string display_of(const SubscriptionId& id) { return id.str().substr(0, id.str().find(';')); }

void add_options(json::object& out, const SubscriptionOptions& options) {
  json::value written = json::write_value(options);
  for (auto& member : written.as_object()) out[member.key()] = std::move(member.value());
}

}  // namespace

Result<ModelId> path_model_id(const net::Request& request) {
  const std::string& text = request.param("model_id");
  ModelId id = 0;
  auto [stopped, failed] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (failed != std::errc() || stopped != text.data() + text.size() || id < 1 || id > kModelIdMax)
    return bad_field("model_id", fmt::format("must be a whole number between 1 and {}", kModelIdMax));
  return id;
}

Result<DisplayRecord> read_display(json::object body) {
  TRY(read, read_body<DisplayBody>(std::move(body), {"created_at", "updated_at"}));
  return std::move(read.display);
}

Result<PlaylistRecord> read_playlist(json::object body) {
  TRY(read, read_body<PlaylistBody>(std::move(body), {"created_at", "updated_at"}));
  return std::move(read.playlist);
}

Result<ModelRecord> read_model(json::object body) {
  TRY(read, read_body<ModelBody>(std::move(body), {"created_at", "updated_at", "file", "kind"}));
  return std::move(read.model);
}

Result<SubscriptionRecord> read_subscription(json::object body, const camera::Rules& rules) {
  TRY(read, read_body<SubscriptionBody>(std::move(body), {"created_at", "tenant_id", "display_id"}));
  SubscriptionRecord& subscription = read.subscription;
  TRY(parts, parts_of(subscription.id.str()));
  if (!subscription.camera.empty() && subscription.camera != parts.camera)
    return bad_field("camera_uuid", "must be the one in subscription_identifier, after its first semicolon");
  subscription.camera = parts.camera;
  if (const auto& url = subscription.options.snapshot_url) {
    if (auto problem = camera::host_problem(*url, rules); !problem.empty())
      return bad_field("snapshot_url", std::move(problem));
  }
  return std::move(subscription);
}

json::object write_display(const DisplayRecord& display) {
  json::object out{{"display_id", display.id.str()},
                   {"tenant_id", display.tenant.str()},
                   {"name", display.name},
                   {"camera_uuid", id_or_null(display.camera)},
                   {"playlist_id", id_or_null(display.playlist)}};
  add_times(out, display.created_at, display.updated_at);
  return out;
}

json::object write_playlist(const PlaylistRecord& playlist) {
  json::object out{{"playlist_id", playlist.id.str()},
                   {"tenant_id", playlist.tenant.str()},
                   {"name", playlist.name},
                   {"model_id", playlist.model}};
  add_times(out, playlist.created_at, playlist.updated_at);
  return out;
}

json::object write_model(const ModelRecord& model) {
  json::object out{{"kind", "cluster"},  {"model_id", model.id},           {"tenant_id", model.tenant.str()},
                   {"name", model.name}, {"file", write_file(model.file)}, {"metadata", model.metadata}};
  add_times(out, model.created_at, model.updated_at);
  return out;
}

json::object write_subscription(const SubscriptionRecord& subscription, const Caller& caller) {
  json::object out{{"subscription_identifier", subscription.id.str()},
                   {"display_id", display_of(subscription.id)},
                   {"camera_uuid", subscription.camera.str()},
                   {"tenant_id", subscription.tenant.str()},
                   {"model_id", subscription.model}};
  add_options(out, subscription.options);
  if (subscription.options.snapshot_url && !sees_credentials(caller))
    out["snapshot_url"] = camera::shown_url(*subscription.options.snapshot_url);
  out["created_at"] = to_iso(subscription.created_at);
  return out;
}

json::object write_desired(const DesiredSubscription& desired) {
  const camera::Config& camera = desired.camera;
  json::object out{{"subscription_identifier", desired.id.str()},
                   {"display_id", display_of(desired.id)},
                   {"camera_uuid", camera.camera.str()},
                   {"tenant_id", camera.tenant.str()},
                   {"site_id", camera.site.str()},
                   {"rtsp_url", nullptr},
                   {"model_id", desired.model.id},
                   {"model_name", desired.model.name},
                   {"model_file", write_file(desired.model.file)},
                   {"ad_hoc", desired.ad_hoc},
                   {"above_version", desired.above.n},
                   {"created_at", to_iso(desired.created_at)}};
  if (!camera.rtsp_url.empty()) out["rtsp_url"] = camera.rtsp_url.reveal();
  add_options(out, desired.options);
  return out;
}

}  // namespace weir::control_plane
