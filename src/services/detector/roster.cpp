#include "weir/detector/roster.hpp"

#include "weir/base/log.hpp"
#include "weir/base/spawn.hpp"

#include <boost/url/parse.hpp>

namespace weir::detector {

namespace asio = boost::asio;
using cluster::Subscribe;

namespace {

bool same_but_for_the_link(const Subscribe& a, const Subscribe& b) {
  Subscribe like_a = b;
  like_a.model_url = a.model_url;
  return a == like_a;
}

// The word by which this process knows the subscription's camera.
CameraId camera_of(const Subscribe& wanted) { return CameraId::trusted(wanted.subscription.text()); }

bool by_snapshots(const Subscribe& wanted) { return wanted.snapshot_url && wanted.snapshot_every; }

// Cameras at one host share a limit of dials, as those of one site do: it is most often one recorder.
SiteId site_of(const Secret& url) {
  auto parsed = boost::urls::parse_uri(url.reveal());
  return SiteId::trusted(parsed ? std::string(parsed->encoded_host()) : "");
}

std::string scheme_of(const Secret& url) {
  auto parsed = boost::urls::parse_uri(url.reveal());
  std::string scheme(parsed ? std::string(parsed->scheme()) : "");
  std::ranges::transform(scheme, scheme.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return scheme;
}

}  // namespace

Roster::Roster(asio::io_context& io, Clock& clock, Cameras& cameras, Models& models, Sightings& sightings,
               net::Metrics& metrics, RosterSettings settings, std::function<double()> draw)
    : io_(io),
      clock_(clock),
      cameras_(cameras),
      models_(models),
      sightings_(sightings),
      metrics_(metrics),
      settings_(std::move(settings)),
      draw_(std::move(draw)) {
  show_size();
}

void Roster::obey(const cluster::Command& command) {
  if (const auto* wanted = std::get_if<cluster::Subscribe>(&command)) return take_on(*wanted);
  if (const auto* over = std::get_if<cluster::Unsubscribe>(&command)) return let_go(over->subscription.text());
  if (const auto* session = std::get_if<cluster::SetSessionId>(&command))
    log::info("detector.session", session->session ? "a display has a session" : "a display has no session any more")
        .with("display_id", session->display)
        .with("session_id", session->session.value_or(0));
  if (const auto* patched = std::get_if<cluster::PatchSessionResult>(&command))
    log::info("detector.session_patched", "the master answers a change to a session, which this worker never asks for")
        .with("session_id", patched->session)
        .with("success", patched->success);
}

void Roster::take_on(const Subscribe& wanted) {
  std::string id = wanted.subscription.text();
  auto found = given_.find(id);
  if (found == given_.end() && given_.size() >= settings_.subscriptions_max)
    return complain(id, "detector.refused",
                    {Errc::too_many, "too_many",
                     fmt::format("this worker takes no more than {} subscriptions", settings_.subscriptions_max)});
  bool same = found != given_.end() && same_but_for_the_link(found->second.wanted, wanted);
  if (!same) {
    let_go(id);
    log::info("detector.subscribed")
        .with("subscription", id)
        .with("model_id", wanted.model_id)
        .with("model_name", wanted.model_name);
  }
  Given& given = given_[id];
  given.wanted = wanted;
  show_size();
  if (std::string problem = address_problem(wanted); !problem.empty())
    return complain(id, "detector.address_refused", {Errc::forbidden, "URL_REFUSED", std::move(problem)});
  ask_for_model(id);
}

void Roster::let_go(const std::string& subscription) {
  auto found = given_.find(subscription);
  if (found == given_.end()) return;
  CameraId camera = camera_of(found->second.wanted);
  if (found->second.model) cameras_.remove(camera);
  sightings_.forget(camera);
  given_.erase(found);
  show_size();
  log::info("detector.unsubscribed").with("subscription", subscription);
}

// ---- models ----

void Roster::ask_for_model(const std::string& subscription) {
  std::uint64_t asked = given_.at(subscription).asked = ++asked_;
  spawn(io_.get_executor(), fetch_model(subscription, asked), "the fetching of a model");
}

bool Roster::still_asks(const std::string& subscription, std::uint64_t asked) const {
  auto found = given_.find(subscription);
  return found != given_.end() && found->second.asked == asked;
}

// A link that was refused is not tried again: the master gives a fresh one with the subscription.
asio::awaitable<void> Roster::fetch_model(std::string subscription, std::uint64_t asked) {
  for (int tries = 0; still_asks(subscription, asked); ++tries) {
    Secret url = given_.at(subscription).wanted.model_url;
    auto model = co_await models_.get(std::move(url));
    if (!still_asks(subscription, asked)) co_return;
    if (model) {
      begin(given_.at(subscription), *std::move(model));
      co_return;
    }
    complain(subscription, "detector.no_model", model.error());
    if (model.error().code != Errc::unavailable) co_return;
    co_await clock_.wait(settings_.fetch_again.delay(tries, draw_()));
  }
}

void Roster::begin(Given& given, StoredModel model) {
  if (given.model && given.model->sha256 == model.sha256) return;
  given.model = std::move(model);
  cameras_.add(source_of(given));
}

void Roster::complain(const std::string& subscription, std::string_view event, const Error& why) {
  metrics_.counter("weir_detector_problems_total", "Subscriptions that cannot begin for now, by the reason",
                   {{"event", std::string(event)}}).add();
  log::warn(event, why.message).with("subscription", subscription).with("error_code", why.reason);
}

// ---- cameras ----

// Checks the scheme, and of a snapshot the host. The adapter that dials checks the resolved address.
std::string Roster::address_problem(const Subscribe& wanted) const {
  if (!by_snapshots(wanted)) {
    std::string scheme = scheme_of(wanted.rtsp_url);
    return scheme == "rtsp" || scheme == "rtsps" ? "" : "the stream's address must begin with rtsp:// or rtsps://";
  }
  if (auto problem = camera::snapshot_url_problem(*wanted.snapshot_url); !problem.empty())
    return "the snapshot's address " + problem;
  auto place = web_place(*wanted.snapshot_url);
  if (!place) return "the snapshot's address cannot be read";
  const HostList& allowed = settings_.snapshot_hosts;
  if (allowed.empty() || allowed.has(*place)) return "";
  return fmt::format("snapshots may come from {} and not from {}:{}: name it in detector_snapshot_hosts if they may",
                     allowed.text(), place->host, place->port);
}

link::Source Roster::source_of(const Given& given) const {
  const Subscribe& wanted = given.wanted;
  link::Source source;
  source.snapshots = by_snapshots(wanted);
  camera::Config& config = source.config;
  config.camera = camera_of(wanted);
  config.name = wanted.subscription.camera;
  if (source.snapshots) {
    config.snapshot = camera::Snapshot{.url = *wanted.snapshot_url, .interval_s = seconds(*wanted.snapshot_every)};
    config.site = site_of(*wanted.snapshot_url);
  } else {
    config.rtsp_url = wanted.rtsp_url;
    config.site = site_of(wanted.rtsp_url);
  }
  if (wanted.crop)
    config.crop = camera::Crop{.x = wanted.crop->x1, .y = wanted.crop->y1, .width = wanted.crop->x2 - wanted.crop->x1,
                               .height = wanted.crop->y2 - wanted.crop->y1};
  config.max_fps = settings_.max_fps;
  config.min_score = settings_.min_score;
  config.motion_gating.enabled = settings_.motion_gate;
  config.model = {given.model->facts.detector, given.model->sha256};
  return source;
}

// ---- what others ask ----

std::vector<cluster::CameraConnection> Roster::connections() const {
  std::set<CameraId> online = cameras_.online();
  std::vector<cluster::CameraConnection> out;
  for (const auto& [id, given] : given_)
    out.push_back({.subscription = given.wanted.subscription,
                   .model_id = given.wanted.model_id,
                   .model_name = given.wanted.model_name,
                   .online = given.model && online.contains(camera_of(given.wanted)),
                   .crop = given.wanted.crop});
  return out;
}

std::optional<cluster::ImageDetection> Roster::result_of(Sighting sighting) const {
  auto found = given_.find(sighting.camera.str());
  if (found == given_.end() || !found->second.model) return std::nullopt;
  const Given& given = found->second;
  return cluster::ImageDetection{.subscription = given.wanted.subscription,
                                 .timestamp = sighting.captured,
                                 .detection = cluster::describe(given.model->facts.fields, sighting.boxes),
                                 .model_id = given.wanted.model_id,
                                 .model_name = given.wanted.model_name,
                                 .boxes = std::move(sighting.boxes)};
}

PicturePtr Roster::latest(const std::string& camera) const {
  PicturePtr newest;
  for (const auto& [id, given] : given_) {
    if (given.wanted.subscription.camera != camera) continue;
    PicturePtr picture = cameras_.latest(camera_of(given.wanted));
    if (picture && (!newest || picture->captured > newest->captured)) newest = std::move(picture);
  }
  return newest;
}

bool Roster::knows(const std::string& camera) const {
  auto is_of_it = [&](const auto& each) { return each.second.wanted.subscription.camera == camera; };
  return std::ranges::any_of(given_, is_of_it);
}

std::set<std::string> Roster::models() const {
  std::set<std::string> out;
  for (const auto& [id, given] : given_)
    if (given.model) out.insert(given.model->sha256);
  return out;
}

void Roster::show_size() {
  metrics_.gauge("weir_detector_subscriptions", "Subscriptions that this worker has")
      .set(static_cast<double>(given_.size()));
}

}  // namespace weir::detector
