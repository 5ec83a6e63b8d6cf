#include "camera_import.hpp"

#include "common/print.hpp"
#include "warnings.hpp"

#include "weir/camera/config.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace weir::apps {

namespace {

std::string text_field(const json::object& object, std::string_view name) {
  const json::value* v = object.if_contains(name);
  return v != nullptr && v->is_string() ? std::string(v->get_string()) : std::string();
}

bool is_missing(Api& api, const std::string& target) {
  auto found = api.get(target);
  return !found && found.error().code == Errc::not_found;
}

// An error where the site is another tenant's: nothing that is added makes the two fit.
Status check_owner(Api& api, const std::string& tenant, const std::string& site) {
  auto known = api.get(route("/v1/sites", site));
  std::string owner = known ? cell(*known, "tenant_id") : tenant;
  if (owner == tenant) return ok();
  return Error{Errc::conflict, "site_of_another_tenant",
               fmt::format("site {} belongs to tenant {}, not to {}", site, owner, tenant)};
}

// Names the tenant or site that is missing, and the command that adds it.
Error explained(Api& api, Error why, const json::object& camera) {
  std::string tenant = text_field(camera, "tenant_id"), site = text_field(camera, "site_id");
  if (why.reason != "site_not_found" && why.reason != "tenant_not_found") return why;
  if (is_missing(api, route("/v1/tenants", tenant))) why.reason = "tenant_not_found";
  else if (Status fits = check_owner(api, tenant, site); !fits) return fits.error();
  if (why.reason == "site_not_found")
    why.message = fmt::format("tenant {1} has no site {0}: --create adds it, or: weir site add {0} --tenant {1}", site, tenant);
  if (why.reason == "tenant_not_found")
    why.message = fmt::format("there is no tenant {0}: --create adds it, or: weir tenant add {0}", tenant);
  return why;
}

// Creates it, or finds that it is there.
Status ensure(Api& api, const std::string& target, const json::object& body) {
  auto made = api.send(net::Method::post, target, body);
  return made || made.error().code == Errc::conflict ? ok() : Status(made.error());
}

Status ensure_place(Api& api, const json::object& camera) {
  std::string tenant = text_field(camera, "tenant_id"), site = text_field(camera, "site_id");
  TRY(fits, check_owner(api, tenant, site));
  TRY(tenant_there, ensure(api, "/v1/tenants", {{"tenant_id", tenant}}));
  return ensure(api, "/v1/sites", {{"site_id", site}, {"tenant_id", tenant}});
}

// Where an address stands: "rtsp_url", "substream_url" and "snapshot"'s "url".
json::value* address_in(json::object& camera, std::string_view field) {
  json::value* found = camera.if_contains(field);
  if (found != nullptr && found->is_object()) found = found->get_object().if_contains("url");
  return found != nullptr && found->is_string() ? found : nullptr;
}

// Puts the stored address in the place of one that stands without its credentials.
Status restore_addresses(json::object& camera, const json::value& stored) {
  auto config = camera::read_config(stored, json::Unknown::ignore);
  json::object shown = config ? camera::write_config(*config, camera::Credentials::redacted) : json::object();
  json::object whole = stored.is_object() ? stored.get_object() : json::object();
  for (const char* field : {"rtsp_url", "substream_url", "snapshot"}) {
    json::value* given = address_in(camera, field);
    if (given == nullptr || !is_redacted(given->get_string())) continue;
    json::value *known = address_in(shown, field), *real = address_in(whole, field);
    if (known == nullptr || real == nullptr || *known != *given)
      return Error{Errc::invalid, "redacted_url",
                   fmt::format("{} stands without its credentials (***), and is not the address that this camera has: "
                               "give the whole one, as `weir camera export --with-credentials` writes it", field)};
    *given = *real;
  }
  return ok();
}

bool any_redacted(json::object& camera) {
  return std::ranges::any_of(std::array{"rtsp_url", "substream_url", "snapshot"}, [&](const char* field) {
    json::value* url = address_in(camera, field);
    return url != nullptr && is_redacted(url->get_string());
  });
}

class Importer {
 public:
  Importer(Api& api, const ImportOptions& options) : api_(api), options_(options) {}

  // The word for what was done, and the camera as it is now.
  Result<std::pair<std::string, json::value>> put(json::object camera) {
    std::string id = text_field(camera, "camera_uuid");
    bool redacted = any_redacted(camera);
    if (redacted) {
      auto stored = api_.get(route("/v1/cameras", id));
      if (!stored && stored.error().code != Errc::not_found) return stored.error();
      TRY(restored, restore_addresses(camera, stored ? *stored : json::value()));
    }
    if (options_.create) {
      std::string place = text_field(camera, "tenant_id") + "\n" + text_field(camera, "site_id");
      if (!there_.contains(place)) {
        TRY(there, ensure_place(api_, camera));
      }
      there_.insert(place);
    }
    auto added = add_camera(api_, camera, false);
    if (added) return std::pair{std::string("added"), *std::move(added)};
    if (added.error().code != Errc::conflict) return added.error();
    if (!options_.update) {
      Error exists = added.error();
      exists.message += " (--update changes a camera that exists)";
      return exists;
    }
    // Fields that the file does not name stay as they were set: zones, a model, a camera that was disabled.
    TRY(updated, api_.send(net::Method::patch, route("/v1/cameras", id), camera));
    return std::pair{std::string("updated"), std::move(updated)};
  }

 private:
  Api& api_;
  const ImportOptions options_;
  std::set<std::string> there_;
};

}  // namespace

Result<json::value> add_camera(Api& api, const json::object& camera, bool create) {
  if (create) {
    TRY(there, ensure_place(api, camera));
  }
  // A mistyped name must not become a tenant.
  auto added = api.send(net::Method::post, "/v1/cameras?create_places=false", camera);
  if (!added) return explained(api, added.error(), camera);
  return added;
}

std::string counts_text(const ImportCounts& counts) {
  std::string out = fmt::format("{} added, {} updated, {} failed", counts.added, counts.updated, counts.failed);
  return counts.not_tried == 0 ? out : fmt::format("{}, {} not tried", out, counts.not_tried);
}

ImportCounts import_cameras(Api& api, const std::vector<CameraLine>& lines, const ImportOptions& options,
                            const std::function<bool(const Imported&)>& each) {
  Importer importer(api, options);
  ImportCounts counts{.not_tried = static_cast<int>(lines.size())};
  for (const CameraLine& line : lines) {
    Imported report{.line = line.line, .camera = text_field(line.camera, "camera_uuid")};
    bool gone = false;
    --counts.not_tried;
    if (!line.problem.empty()) {
      report.result = "failed";
      report.message = line.problem;
    } else if (auto put = importer.put(line.camera); put) {
      report.result = put->first;
      report.warnings = warnings_in(put->second);
    } else {
      report.result = "failed";
      report.message = put.error().message;
      gone = put.error().reason == "unreachable" || put.error().reason == "timeout";
    }
    ++(report.result == "added" ? counts.added : report.result == "updated" ? counts.updated : counts.failed);
    if (!each(report) || gone) break;
  }
  return counts;
}

}  // namespace weir::apps
