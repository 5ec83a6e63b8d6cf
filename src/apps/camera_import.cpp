#include "camera_import.hpp"

#include <set>

namespace weir::apps {

namespace {

std::string text_field(const json::object& object, std::string_view name) {
  const json::value* v = object.if_contains(name);
  return v != nullptr && v->is_string() ? std::string(v->get_string()) : std::string();
}

class Importer {
 public:
  Importer(Api& api, const ImportOptions& options) : api_(api), options_(options) {}

  Result<std::string> put(const json::object& camera) {
    if (options_.create) {
      std::string tenant = text_field(camera, "tenant_id"), site = text_field(camera, "site_id");
      TRY(tenant_there, ensure("/v1/tenants", {{"tenant_id", tenant}}));
      TRY(site_there, ensure("/v1/sites", {{"site_id", site}, {"tenant_id", tenant}}));
    }
    auto added = api_.send(net::Method::post, "/v1/cameras", camera);
    if (added) return std::string("added");
    if (added.error().code != Errc::conflict) return added.error();
    if (!options_.update) {
      Error exists = added.error();
      exists.message += " (--update changes a camera that exists)";
      return exists;
    }
    // What the file does not name stays as somebody has set it: zones, a model, a camera that was disabled.
    TRY(updated, api_.send(net::Method::patch, route("/v1/cameras", text_field(camera, "camera_uuid")), camera));
    return std::string("updated");
  }

 private:
  // Creates it, or finds that it is there; asks once for each.
  Status ensure(const std::string& target, const json::object& body) {
    std::string key = target + json::to_text(body);
    if (there_.contains(key)) return ok();
    auto made = api_.send(net::Method::post, target, body);
    if (!made && made.error().code != Errc::conflict) return made.error();
    there_.insert(key);
    return ok();
  }

  Api& api_;
  const ImportOptions options_;
  std::set<std::string> there_;
};

}  // namespace

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
      report.result = *put;
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
