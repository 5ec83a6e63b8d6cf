#include "manager_feeds.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/log.hpp"
#include "weir/net/token.hpp"

#include <algorithm>

namespace weir::runner {

namespace asio = boost::asio;

namespace {

constexpr int kPicturesMax = 4;  // sent up at once

std::string text_in(const json::object& o, std::string_view name) {
  const json::value* found = o.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

}  // namespace

void Feeds::list_again() {
  changed_meanwhile_ = true;
  due_.ring();
}

asio::awaitable<void> Feeds::list_cameras() {
  Clock& clock = shell_.ports.clock;
  while (!shell_.over()) {
    changed_meanwhile_ = false;
    auto cameras = co_await shell_.ports.plane.desired(shell_.settings.filter);
    shell_.watch.note("cameras", cameras, clock.now());
    if (cameras) {
      remember(cameras->readable);
      CamerasListed listed{.cameras = {}, .unreadable = std::move(cameras->unreadable)};
      for (DesiredCamera& each : cameras->readable)
        listed.cameras.push_back({std::move(each.config), std::move(each.version), each.crashes});
      shell_.feed(listed);
      listed_ = true;
      co_await learn_holders();
    } else {
      log::debug("cameras.unlisted", cameras.error().message);
    }
    Duration pause = cameras ? shell_.settings.camera_poll : Duration(1s);
    pause = from_seconds(seconds(pause) * (0.75 + 0.5 * shell_.settings.draw()));
    if (!changed_meanwhile_ && !shell_.over()) co_await due_.wait_until(clock.now() + pause);
    co_await clock.wait(30ms);  // changes come in swarms
  }
}

// The list on disk only explains what a runner waits for: leases decide, and without the control plane there are none.
void Feeds::remember(const std::vector<DesiredCamera>& cameras) {
  json::array list;
  for (const DesiredCamera& camera : cameras)
    list.push_back(camera::write_config(camera.config, camera::Credentials::shown));
  size_t hash = std::hash<std::string>()(json::to_text(list));
  if (hash == remembered_) return;
  json::object kept{{"listed_at", to_iso(shell_.ports.clock.wall())}, {"cameras", std::move(list)}};
  if (shell_.ports.disk.keep_cameras(json::to_text(kept))) remembered_ = hash;
}

// A runner that takes no more cameras does not ask for them, and its feed begins when it joins: a camera that seems
// to wait for an owner may have one, so the runner lists the holders.
asio::awaitable<void> Feeds::learn_holders() {
  Clock& clock = shell_.ports.clock;
  Summary summary = shell_.brain.summary();
  bool asks = summary.acquiring && summary.owned < shell_.brain.policy().room();
  if (asks || summary.pending == 0 || clock.now() < holders_due_) co_return;
  auto held = co_await shell_.ports.plane.held();
  if (!held) co_return;
  holders_due_ = clock.now() + 30s;  // it can be a long list
  HoldersHeard heard;
  for (Holding& each : *held)
    if (each.runner != shell_.owner.runner) heard.others.emplace(std::move(each.camera), each.version);
  shell_.feed(heard);
}

asio::awaitable<void> Feeds::follow(std::string pattern) {
  Clock& clock = shell_.ports.clock;
  std::string cursor;
  for (int failures = 0; !shell_.over();) {
    if (!workers_.have_token()) {
      co_await clock.wait(50ms);
      continue;
    }
    bool heard = false;
    Subscription wanted{.pattern = pattern, .after = cursor, .progress = [&](const std::string& at) {
                          cursor = at;
                          heard = true;
                        }};
    Status ended = co_await shell_.ports.bus.subscribe(std::move(wanted), [&](const DeliveredEvent& event) {
      cursor = event.cursor;
      heard = true;
      hear(event);
      return !shell_.over();
    });
    failures = heard ? 0 : failures + 1;
    if (shell_.over()) co_return;
    if (!ended) log::debug("feed.ended", ended.error().message).with("pattern", pattern);
    if (!ended && ended.error().code == Errc::unauthorized) membership_.token_refused();
    list_again();  // what was missed meanwhile is looked up
    co_await clock.wait(Backoff{.first = 100ms, .cap = 2s}.delay(failures, shell_.settings.draw()));
  }
}

void Feeds::hear(const DeliveredEvent& event) {
  std::string_view key = event.routing_key;
  bool wanted = key.starts_with("camera.snapshot_wanted.");
  if (key.starts_with("camera.") && !wanted) return list_again();
  auto payload = json::parse_text(event.payload);
  if (!payload || !payload->is_object()) return;
  const json::object& said = payload->get_object();
  if (!wanted) return hear_lease(key, said);
  const lease::Owner& owner = shell_.owner;
  bool busy = pictures_under_way_ == kPicturesMax;  // the client that waits asks again
  bool mine = text_in(said, "runner_id") == owner.runner.str() && text_in(said, "boot_id") == owner.boot.str();
  if (mine && !busy)
    shell_.spawn(send_picture(CameraId::trusted(text_in(said, "camera_uuid")), text_in(said, "request_id")), "picture");
}

void Feeds::hear_lease(std::string_view key, const json::object& said) {
  LeaseNews news{.camera = CameraId::trusted(text_in(said, "camera_uuid")),
                 .runner = RunnerId::trusted(text_in(said, "runner_id"))};
  if (news.camera.empty()) return;  // a lease of another kind
  if (const json::value* version = said.if_contains("version"); version != nullptr && version->is_int64())
    news.version = {version->get_int64()};
  news.free =
      key.starts_with("lease.released.") || key.starts_with("lease.expired.") || key.starts_with("lease.revoked.");
  bool taken = key.starts_with("lease.granted.") || key.starts_with("lease.stolen.");
  if (news.free || taken) shell_.feed(news);
}

// A client wants to see the camera. That there is no picture is an answer as well.
asio::awaitable<void> Feeds::send_picture(CameraId camera, std::string request) {
  ++pictures_under_way_;
  SnapshotPicture picture{.request = std::move(request)};
  Summary now = shell_.brain.summary();
  auto view = std::ranges::find(now.cameras, camera, &CameraView::camera);
  WorkerPtr worker = view == now.cameras.end() ? nullptr : workers_.find(view->worker);
  if (worker && worker->ready) {
    auto answer = co_await worker->link->page(fmt::format("/snapshot/{}.jpg", percent_encode(camera.str())));
    if (answer && answer->status == 200) {
      picture.jpeg = net::base64url(answer->body);
      picture.captured_at = answer->captured_at;
    }
  }
  auto sent = co_await shell_.ports.plane.send_picture(camera, shell_.owner.runner, std::move(picture));
  if (!sent) log::warn("camera.snapshot_unsent", sent.error().message).with("camera_uuid", camera);
  --pictures_under_way_;
}

}  // namespace weir::runner
