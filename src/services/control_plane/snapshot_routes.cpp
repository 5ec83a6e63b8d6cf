#include "plane.hpp"
#include "request.hpp"

#include "weir/base/random.hpp"
#include "weir/net/token.hpp"

#include <cmath>

// A camera's latest picture: the control plane announces that it is wanted, the runner that holds the camera sends it
// up its own connection, and the store carries it to the control plane whose client waits. No control plane dials a
// runner.
namespace weir::control_plane {

using net::Method;

namespace {

constexpr Duration kPatience = 4500ms;
constexpr Duration kLookEvery = 50ms;
constexpr std::string_view kJpegBegin = "\xFF\xD8\xFF";

bool is_held(const LeaseView& view) {
  return !view.row.released && !view.expired && !view.row.revoked && !view.row.owner.runner.empty();
}

Error nobody_holds(const CameraRecord& record) {
  const std::string& id = record.config.camera.str();
  if (!record.config.assignable())
    return {Errc::conflict, "camera_disabled", fmt::format("camera {} is not processed: nobody has a picture of it", id)};
  return {Errc::conflict, "camera_not_held",
          fmt::format("no runner holds camera {} now, so nobody has a picture of it; `weir status` says why", id)};
}

// The runner's answer to the request, or an error where none came in time.
boost::asio::awaitable<Result<SnapshotPicture>> answer_to(Plane& plane, CameraId camera, std::string request, RunnerId runner) {
  for (Instant until = plane.clock.now() + kPatience; plane.clock.now() < until;) {
    CameraId looked = camera;
    std::string question = request;
    CO_TRY(found, co_await plane.pictures.find_picture(std::move(looked), std::move(question)));
    if (found) co_return *std::move(found);
    co_await plane.clock.wait(kLookEvery);
  }
  co_return Error{Errc::unavailable, "snapshot_timeout",
                  fmt::format("runner {} did not send a picture of camera {} within {:.0f} s; is it alive? see `weir node show {}`",
                              runner.str(), camera.str(), std::ceil(seconds(kPatience)), runner.str())};
}

Reply show_snapshot(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(camera, path_id<CameraId>(request));
  CameraId looked = camera, leased = camera;
  TenantId tenant = caller.tenant, same = caller.tenant;
  CO_TRY(record, co_await plane.cameras.show_camera(std::move(looked), std::move(tenant)));
  CO_TRY(lease, co_await plane.leases.show(std::move(leased), std::move(same)));
  if (!is_held(lease)) co_return nobody_holds(record);
  if (plane.snapshots.crowded())
    co_return Error{Errc::too_many, "too_many_snapshots", "too many pictures are being waited for: ask again in a moment"};
  Snapshots::Waiting waiting(plane.snapshots);
  Snapshots::Question question = plane.snapshots.ask(camera, plane.clock.now());
  RunnerId holder = lease.row.owner.runner;
  if (question.fresh) plane.announcer.snapshot_wanted(lease.row, question.request);
  CO_TRY(picture, co_await answer_to(plane, camera, question.request, holder));
  if (picture.jpeg.empty())
    co_return Error{Errc::conflict, "no_picture",
                    fmt::format("runner {} holds camera {} and has no picture of it yet; `weir status` says what it waits for",
                                holder.str(), camera.str())};
  net::Response response = net::Response::text(net::from_base64url(picture.jpeg).value_or(""), 200, "image/jpeg");
  if (!picture.captured_at.empty()) response.headers.emplace_back("X-Captured-At", picture.captured_at);
  response.headers.emplace_back("Cache-Control", "no-store");
  co_return response;
}

struct SentPicture {
  RunnerId runner;
  SnapshotPicture picture;
};
std::string request_problem(const std::string& text) {
  bool sane = !text.empty() && text.size() <= 64 && name_problem(text).empty();
  return sane ? "" : "must be the request_id of the announcement";
}
std::string jpeg_problem(const std::string& text) {
  auto bytes = net::from_base64url(text);
  return text.empty() || (bytes && bytes->starts_with(kJpegBegin)) ? "" : "must be a JPEG in base64url, or empty";
}
std::string time_problem(const std::string& text) {
  return text.empty() || from_iso(text) ? "" : "must be a time such as 2026-01-31T12:00:00.000Z";
}
template <class V>
void fields(V& v, SentPicture& s) {
  v.required("runner_id", s.runner);
  v.required("request_id", s.picture.request, request_problem);
  v.optional("captured_at", s.picture.captured_at, time_problem);
  v.optional("jpeg", s.picture.jpeg, jpeg_problem);
}

// A runner may send pictures only of cameras that it holds.
Reply take_snapshot(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(camera, path_id<CameraId>(request));
  CO_TRY(sent, body_as<SentPicture>(request));
  CO_TRY(own, speaks_for(caller, sent.runner));
  CameraId leased = camera;
  TenantId tenant = caller.tenant;
  CO_TRY(lease, co_await plane.leases.show(std::move(leased), std::move(tenant)));
  if (!is_held(lease) || lease.row.owner.runner != sent.runner)
    co_return Error{Errc::conflict, "not_holder", "this runner does not hold the camera"};
  CO_TRY(kept, co_await plane.pictures.put_picture(std::move(camera), std::move(sent.picture)));
  co_return net::Response::json(json::object{{"kept", true}});
}

}  // namespace

Snapshots::Question Snapshots::ask(const CameraId& camera, Instant now) {
  std::erase_if(asked_, [&](const auto& each) { return now - each.second.at >= kShared; });
  auto [at, fresh] = asked_.try_emplace(camera, Asked{random_hex(16), now});
  return {at->second.request, fresh};
}

void add_snapshot_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, Method::get, "/v1/cameras/{camera_uuid}/snapshot.jpg", kReaders, show_snapshot);
  add_guarded(router, plane, Method::put, "/v1/cameras/{camera_uuid}/snapshot", kRunners, take_snapshot);
}

}  // namespace weir::control_plane
