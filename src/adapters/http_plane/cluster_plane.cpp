#include "weir/http_plane/cluster_plane.hpp"

#include "answer_fields.hpp"

namespace weir::http_plane {

namespace asio = boost::asio;

namespace {

std::optional<std::int64_t> some_number(const json::value& v, std::string_view name) {
  const json::value* found = field(v, name);
  return found == nullptr || found->is_null() ? std::nullopt : std::optional(number_of(v, name));
}

std::optional<cluster::Crop> crop_of(const json::value& v) {
  auto edge = [&](std::string_view name) { return some_number(v, name); };
  auto x1 = edge("crop_x1"), y1 = edge("crop_y1"), x2 = edge("crop_x2"), y2 = edge("crop_y2");
  if (!x1 || !y1 || !x2 || !y2) return std::nullopt;
  return cluster::Crop{static_cast<int>(*x1), static_cast<int>(*y1), static_cast<int>(*x2), static_cast<int>(*y2)};
}

Result<ClusterWish> read_wish(const json::value& item) {
  TRY(id, cluster::Identifier::parse(text_of(item, "subscription_identifier")));
  ClusterWish out{.site = SiteId::trusted(text_of(item, "site_id")), .above = {number_of(item, "above_version")}};
  cluster::DesiredSubscription& s = out.subscription;
  s.id = std::move(id);
  s.tenant = TenantId::trusted(text_of(item, "tenant_id"));
  s.rtsp_url = Secret(text_of(item, "rtsp_url"));
  if (std::string url = text_of(item, "snapshot_url"); !url.empty()) s.snapshot_url = Secret(url);
  if (auto ms = some_number(item, "snapshot_interval_ms")) s.snapshot_every = std::chrono::milliseconds(*ms);
  s.model_id = number_of(item, "model_id");
  s.model_name = text_of(item, "model_name");
  if (const json::value* file = field(item, "model_file")) s.model_checksum = text_of(*file, "sha256");
  s.crop = crop_of(item);
  s.created_at = from_iso(text_of(item, "created_at")).value_or(WallTime{});
  if (s.tenant.empty() || out.site.empty()) return bad_answer();
  return out;
}

}  // namespace

Result<std::unique_ptr<HttpClusterPlane>> HttpClusterPlane::create(asio::io_context& io, Clock& clock, Config config) {
  TRY(talk, PlaneTalk::create(io, clock, std::move(config)));
  return std::unique_ptr<HttpClusterPlane>(new HttpClusterPlane(std::move(talk)));
}

asio::awaitable<Result<std::vector<ClusterWish>>> HttpClusterPlane::desired(ClusterId cluster) {
  CO_TRY(items, co_await talk_->list(fmt::format("/v1/clusters/{}/desired?limit=1000", percent_encode(cluster.str()))));
  std::vector<ClusterWish> out;
  out.reserve(items.size());
  for (const json::value& item : items) {
    CO_TRY(wish, read_wish(item));
    out.push_back(std::move(wish));
  }
  co_return std::move(out);
}

asio::awaitable<Result<Secret>> HttpClusterPlane::model_url(std::int64_t model) {
  Secret url;
  PlaneTalk::Read read = [&](json::value& answer) -> Status {
    url = Secret(text_of(answer, "url"));
    return url.empty() ? Status(bad_answer()) : ok();
  };
  Status heard = co_await talk_->ask(net::Method::post, fmt::format("/v1/models/{}/file-url", model), "{}",
                                     talk_->config().patience, std::move(read));
  if (!heard) co_return std::move(heard).error();
  co_return std::move(url);
}

// ---- ad-hoc subscriptions ----

asio::awaitable<Status> HttpClusterPlane::subscribe(SubscriptionRecord wanted) {
  json::value options = json::write_value(wanted.options);
  json::object body = std::move(options.as_object());
  body["subscription_identifier"] = wanted.id.str();
  body["model_id"] = wanted.model;
  co_return co_await talk_->ask(net::Method::post, "/v1/subscriptions", json::to_text(body), talk_->config().patience,
                                [](json::value&) { return ok(); }, true, PlaneTalk::Refusals::some_but_missing);
}

asio::awaitable<Result<bool>> HttpClusterPlane::unsubscribe(SubscriptionId subscription) {
  std::string target = "/v1/subscriptions/" + percent_encode(subscription.str());
  Status ended = co_await talk_->ask(net::Method::del, std::move(target), {}, talk_->config().patience,
                                     [](json::value&) { return ok(); }, true, PlaneTalk::Refusals::some_but_missing);
  if (!ended && ended.error().reason == "subscription_not_found") co_return false;
  if (!ended) co_return std::move(ended).error();
  co_return true;
}

asio::awaitable<Result<std::vector<SubscriptionId>>> HttpClusterPlane::subscriptions_of(CameraId camera) {
  CO_TRY(items, co_await talk_->list("/v1/subscriptions?limit=1000"));
  std::vector<SubscriptionId> out;
  for (const json::value& item : items)
    if (text_of(item, "camera_uuid") == camera.str())
      out.push_back(SubscriptionId::trusted(text_of(item, "subscription_identifier")));
  co_return std::move(out);
}

}  // namespace weir::http_plane
