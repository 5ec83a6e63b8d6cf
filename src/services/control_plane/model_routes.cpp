// Models of both kinds: those that runners have on their machines, which only runners can change, and those that the
// store keeps for detector clusters.
#include "advice.hpp"
#include "model_record.hpp"

#include <charconv>

namespace weir::control_plane {

namespace {

// ---- the list of both ----

struct Listed {
  std::string place;  // in the list: runners' models come first
  json::object model;
};
constexpr std::string_view kRunnersPlace = "1\n", kClustersPlace = "2\n";

enum class Wanted { both, runner, cluster };
Result<Wanted> wanted_kind(const net::Request& request) {
  std::string word = request.query_value("kind").value_or("");
  if (word.empty()) return Wanted::both;
  if (word == "runner") return Wanted::runner;
  if (word == "cluster") return Wanted::cluster;
  return bad_field("kind", "must be runner or cluster");
}

// A fleet has a handful of models, however many runners it has.
void add_runners_models(const Plane& plane, const Caller& caller, const Page& page, std::vector<Listed>& found) {
  for (json::value& each : plane.models.list(caller.tenant)) {
    json::object& model = each.as_object();
    std::string_view detector = model.at("detector").as_string(), name = model.at("name").as_string();
    std::string place = fmt::format("{}{}\n{}", kRunnersPlace, detector, name);
    if (place <= page.after) continue;
    model["kind"] = "runner";
    found.push_back({std::move(place), std::move(model)});
  }
}

ModelId last_seen(const Page& page) {
  if (!page.after.starts_with(kClustersPlace)) return 0;
  std::string_view text = std::string_view(page.after).substr(kClustersPlace.size());
  ModelId id = 0;
  std::from_chars(text.data(), text.data() + text.size(), id);
  return id;
}

Reply list_models(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  CO_TRY(wanted, wanted_kind(request));
  std::vector<Listed> found;
  if (wanted != Wanted::cluster && !page.after.starts_with(kClustersPlace)) {
    CO_TRY(learnt, co_await learn_models(plane));
    add_runners_models(plane, caller, page, found);
  }
  int room = page.ask() - static_cast<int>(found.size());
  if (wanted != Wanted::runner && room > 0) {
    TenantId tenant = caller.tenant;
    CO_TRY(models, co_await plane.cluster_models.list_models(std::move(tenant), last_seen(page), room));
    for (const ModelRecord& model : models)
      found.push_back({fmt::format("{}{}", kClustersPlace, model.id), write_model(model)});
  }
  co_return net::Response::json(listed(
      found, page, [](const Listed& each) { return each.place; }, [](const Listed& each) { return each.model; }));
}

}  // namespace

void add_model_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, net::Method::get, "/v1/models", kReadersAndRunners, list_models);
  add_record_routes<OfModels>(router, plane);
}

}  // namespace weir::control_plane
