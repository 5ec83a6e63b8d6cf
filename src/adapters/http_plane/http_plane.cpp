#include "weir/http_plane/http_plane.hpp"

#include "answer_fields.hpp"

#include "weir/base/log.hpp"

namespace weir::http_plane {

namespace asio = boost::asio;

namespace {

constexpr Duration kPictureTime = 4s;  // the client that waits for it has left by then

RunnerFlags read_flags(const json::value& v) {
  RunnerFlags out{.cordoned = flag_of(v, "cordoned"),
                  .drain = named<DrainMode>(text_of(v, "drain_mode")).value_or(DrainMode::none),
                  .capacity = static_cast<int>(number_of(v, "capacity_streams"))};
  if (field(v, "spare_streams") != nullptr) out.spare = static_cast<int>(number_of(v, "spare_streams"));
  return out;
}

Result<DesiredCamera> read_camera(json::value item) {
  if (!item.is_object()) return bad_answer();
  DesiredCamera out{.version = text_of(item, "config_version"), .crashes = static_cast<int>(number_of(item, "crashes"))};
  json::object& config = item.get_object();
  for (const char* name : {"config_version", "zone_version", "crashes", "created_at", "updated_at"}) config.erase(name);
  if (out.version.empty()) out.version = net::sha256_hex(json::to_text(config));
  TRY(read, camera::read_config(item, json::Unknown::ignore));  // of a newer control plane
  out.config = std::move(read);
  return out;
}

Status anything(const json::value&) { return ok(); }

// None where a field is missing: then nothing is known of the lease.
std::optional<lease::LeaseRow> read_lease(const json::value& item) {
  const json::value *boot = field(item, "boot_id"), *assignable = field(item, "assignable");
  lease::LeaseRow row{.subject = CameraId::trusted(text_of(item, "camera_uuid"))};
  row.grant = read_tenure(item).grant;
  if (row.subject.empty() || row.grant.n <= 0 || boot == nullptr || !boot->is_string()) return {};
  if (assignable != nullptr && !assignable->is_bool()) return {};
  row.owner = {RunnerId::trusted(text_of(item, "runner_id")), read_tenure(item).boot};
  row.version = {number_of(item, "version")};
  row.assignable = assignable == nullptr || assignable->get_bool();  // an older control plane does not say
  std::string status = text_of(item, "status");
  row.released = status == "released" || status == "revoked";
  if (const json::value* previous = field(item, "previous")) row.previous = read_tenure(*previous);
  return row;
}

}  // namespace

Result<std::unique_ptr<HttpPlane>> HttpPlane::create(asio::io_context& io, Clock& clock, Config config) {
  TRY(picture_client, net::HttpClient::create(io, config.url, {.ca_file = config.ca_file}));
  TRY(talk, PlaneTalk::create(io, clock, std::move(config)));
  return std::unique_ptr<HttpPlane>(new HttpPlane(std::move(talk), std::move(picture_client)));
}

Status HttpPlane::use(const std::string& url, Secret api_key) {
  TRY(known, talk_->use(url, std::move(api_key)));
  return picture_client_.use(url);
}

asio::awaitable<Result<Registration>> HttpPlane::register_runner(Runner runner) {
  json::object body = write_about(runner);
  body["runner_id"] = runner.id.str();
  body["boot_id"] = runner.boot.str();
  body["capacity_streams"] = runner.capacity;
  if (!runner.tenant.empty()) body["tenant_id"] = runner.tenant.str();
  if (!runner.site.empty()) body["site_id"] = runner.site.str();
  Registration out;
  Read read = [&](json::value& answer) -> Status {
    out.flags = read_flags(answer);
    out.will = Secret(text_of(answer, "will"));
    return out.will.empty() ? Status(bad_answer()) : ok();
  };
  CO_TRY(heard, co_await talk_->ask(net::Method::post, "/v1/runners/register", json::to_text(body),
                                    talk_->config().patience, std::move(read)));
  co_return out;
}

asio::awaitable<Result<RunnerFlags>> HttpPlane::heartbeat(RunnerId runner, json::object body) {
  body["runner_id"] = runner.str();
  RunnerFlags out;
  Read read = [&](json::value& answer) -> Status {
    out = read_flags(answer);
    return ok();
  };
  CO_TRY(heard, co_await talk_->ask(net::Method::post, "/v1/runners/heartbeat", json::to_text(body),
                                    talk_->config().attempt, std::move(read)));
  co_return out;
}

asio::awaitable<Result<DesiredCameras>> HttpPlane::desired(DesiredFilter filter) {
  std::string target = "/v1/cameras?enabled=true&limit=1000";
  if (!filter.tenant.empty()) target += "&tenant_id=" + percent_encode(filter.tenant.str());
  if (!filter.site.empty()) target += "&site_id=" + percent_encode(filter.site.str());
  CO_TRY(items, co_await talk_->list(std::move(target)));
  DesiredCameras out;
  for (json::value& item : items) {
    std::string id = text_of(item, "camera_uuid");
    auto camera = read_camera(std::move(item));
    if (!camera && id.empty()) co_return std::move(camera).error();
    if (!camera) {
      explain_unreadable(id, camera.error());
      out.unreadable.insert(CameraId::trusted(id));
    } else if (camera->config.assignable()) {
      out.readable.push_back(*std::move(camera));
    }
  }
  std::erase_if(unreadable_, [&](const auto& said) { return !out.unreadable.contains(CameraId::trusted(said.first)); });
  co_return std::move(out);
}

asio::awaitable<Result<std::vector<Holding>>> HttpPlane::held() {
  CO_TRY(items, co_await talk_->list("/v1/leases?everybody=true&limit=1000"));
  std::vector<Holding> out;
  auto is_held = [](const json::value& item) {
    std::string status = text_of(item, "status");
    return status == "active" || status == "pending";
  };
  for (const json::value& item : items)
    if (is_held(item))
      out.push_back({CameraId::trusted(text_of(item, "camera_uuid")), RunnerId::trusted(text_of(item, "runner_id")),
                     {number_of(item, "version")}});
  co_return std::move(out);
}

asio::awaitable<Result<std::vector<lease::LeaseRow>>> HttpPlane::leases() {
  CO_TRY(items, co_await talk_->list("/v1/leases?everybody=true&held=false&limit=1000"));
  std::vector<lease::LeaseRow> out;
  for (const json::value& item : items)
    if (auto row = read_lease(item)) out.push_back(*std::move(row));
  co_return std::move(out);
}

void HttpPlane::explain_unreadable(const std::string& camera, const Error& why) {
  if (std::exchange(unreadable_[camera], why.message) == why.message) return;
  log::warn("cameras.unreadable",
            fmt::format("camera {} of the control plane's list cannot be read: {}; where this runner has it, it goes on "
                        "as it was; else it is left to others. Change that field of the camera, or upgrade this runner",
                        camera, why.message))
      .with("camera_uuid", camera);
}

asio::awaitable<Result<BudgetAnswer>> HttpPlane::consume(SiteId site, BudgetUse use) {
  json::object body{{"camera_uuid", use.camera.str()}, {"grant_version", use.grant.n}};
  std::string target = fmt::format("/v1/sites/{}/budget/consume", percent_encode(site.str()));
  auto answer = co_await talk_->ask(net::Method::post, std::move(target), json::to_text(body), talk_->config().attempt,
                                    anything);
  if (answer) co_return BudgetAnswer{.granted = true};
  if (answer.error().reason != "budget_empty") co_return std::move(answer).error();
  auto wait = std::chrono::milliseconds(number_of(json::value(answer.error().details), "retry_after_ms"));
  co_return BudgetAnswer{.granted = false, .retry_after = wait};
}

asio::awaitable<Result<double>> HttpPlane::budget(SiteId site) {
  double tokens = 0;
  Read read = [&](json::value& answer) -> Status {
    const json::value* there = field(answer, "tokens");
    if (there == nullptr || !there->is_number()) return bad_answer();
    tokens = there->to_number<double>();
    return ok();
  };
  std::string target = fmt::format("/v1/sites/{}/budget", percent_encode(site.str()));
  // An older control plane does not tell runners; that is no reason to ask about leases elsewhere.
  CO_TRY(heard, co_await talk_->ask(net::Method::get, std::move(target), {}, talk_->config().attempt, std::move(read),
                                    true, PlaneTalk::Refusals::none));
  co_return tokens;
}

asio::awaitable<Result<Nothing>> HttpPlane::report_crash(CameraId camera, lease::Owner by) {
  json::object body{{"runner_id", by.runner.str()}, {"boot_id", by.boot.str()}};
  std::string target = fmt::format("/v1/cameras/{}/crashes", percent_encode(camera.str()));
  CO_TRY(heard, co_await talk_->ask(net::Method::post, std::move(target), json::to_text(body), talk_->config().patience,
                                    anything, false));
  co_return ok();
}

asio::awaitable<Result<Nothing>> HttpPlane::send_picture(CameraId camera, RunnerId by, SnapshotPicture picture) {
  json::object body{{"runner_id", by.str()}, {"request_id", picture.request}, {"jpeg", picture.jpeg}};
  if (!picture.captured_at.empty()) body["captured_at"] = picture.captured_at;
  std::string target = fmt::format("/v1/cameras/{}/snapshot", percent_encode(camera.str()));
  CO_TRY(token, co_await talk_->runner_token());
  net::ClientRequest request{.method = net::Method::put, .target = std::move(target), .body = json::to_text(body),
                             .bearer = token, .timeout = kPictureTime};
  CO_TRY(answer, co_await picture_client_.send(std::move(request)));
  if (answer.status >= 300) co_return net::response_error(answer);
  co_return ok();
}

}  // namespace weir::http_plane
