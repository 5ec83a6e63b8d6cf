#include "event_bodies.hpp"
#include "page.hpp"
#include "plane.hpp"
#include "request.hpp"
#include "status_bodies.hpp"

#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

#include <unordered_set>

namespace weir::control_plane {

namespace asio = boost::asio;
using net::Method;

namespace {

constexpr Roles kSpeakers = {net::Role::runner, net::Role::worker};
constexpr Roles kPublishers = {net::Role::admin, net::Role::runner, net::Role::worker};

// ---- publishing ----

// The camera's place; null where there is no such camera.
asio::awaitable<Result<const event::Place*>> look_up(Plane& plane, CameraId camera) {
  CameraId asked = camera;
  TenantId any;
  auto seen = co_await plane.leases.show(std::move(asked), std::move(any));
  if (!seen && seen.error().code == Errc::not_found) co_return nullptr;
  if (!seen) co_return std::move(seen).error();
  event::Place found{seen->row.tenant, seen->row.site, std::move(camera)};
  co_return plane.places.keep(std::move(found), plane.clock.now());
}

// Only the store knows where a camera stands; what it said a moment ago is enough to accept a key, not to refuse one.
// A camera that does not exist, or not for this caller, is left to the fence, which gives both the same answer.
asio::awaitable<Status> check_keys(Plane& plane, std::span<const event::Event> events, const TenantId& tenant) {
  std::unordered_set<CameraId> not_theirs;
  for (size_t i = 0; i < events.size(); ++i) {
    if (!events[i].stamp || not_theirs.contains(events[i].stamp->camera)) continue;
    const CameraId& camera = events[i].stamp->camera;
    const event::Place* place = plane.places.find(camera, plane.clock.now());
    if (place == nullptr || !fits_place(events[i], *place, i)) {
      CO_TRY(found, co_await look_up(plane, camera));
      place = found;
    }
    if (place == nullptr || (!tenant.empty() && place->tenant != tenant)) {
      not_theirs.insert(camera);
      continue;
    }
    CO_TRY(own, fits_place(events[i], *place, i));
  }
  co_return ok();
}

void record(Plane& plane, std::span<const Confirmation> answers, const Caller& caller, const net::Request& request) {
  std::array<int, 3> counts{};
  for (Confirmation answer : answers) ++counts[static_cast<size_t>(answer)];
  plane.instruments.events(counts);
  int stale = counts[static_cast<size_t>(Confirmation::stale)];
  if (stale > 0)
    log::debug("events.stale", "other owners publish for these cameras now")
        .with("runner_id", caller.sub)
        .with("events", stale)
        .with("request_id", request.request_id);
}

asio::awaitable<Result<std::vector<Confirmation>>> append(Plane& plane, std::vector<event::Event> events,
                                                          const Caller& caller, const net::Request& request) {
  CO_TRY(own, co_await check_keys(plane, events, caller.tenant));
  EventSpeaker speaker;
  if (caller.role != net::Role::admin) speaker.runner = RunnerId::trusted(caller.sub);
  speaker.boot = caller.boot;
  speaker.tenant = caller.tenant;
  CO_TRY(answers, co_await plane.events.append(std::move(events), std::move(speaker)));
  plane.feed.wake();
  record(plane, answers, caller, request);
  co_return std::move(answers);
}

Reply publish(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_value(request));
  CO_TRY(events, read_events(body, caller));
  std::vector<std::string> ids;
  ids.reserve(events.size());
  for (const event::Event& event : events) ids.push_back(event.event_id);
  CO_TRY(answers, co_await append(plane, std::move(events), caller, request));
  net::Response response;
  response.body = write_confirmations(ids, answers);
  co_return std::move(response);
}

// ---- statuses, from clients that know no versions ----

// Whether whoever says this has the camera. A client of the routes for one camera knows no version: it speaks under that
// of its lease where it took it without a key, by the same rule by which it may renew it.
std::optional<lease::Version> speaks_under(const SaidStatus& status, const lease::LeaseRow& row, const Caller& caller) {
  if (status.version) return status.version;
  bool own = row.owner.runner.str() == caller.sub && !row.released && row.last_key.empty();
  bool boot = row.owner.boot == (caller.boot.empty() ? status.boot : caller.boot);
  return own && boot ? std::optional(row.version) : std::nullopt;
}

// Each status becomes an event of its camera, and the fence judges it as any other.
Reply publish_statuses(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_value(request));
  CO_TRY(statuses, read_statuses(body));
  std::vector<Confirmation> answers(statuses.size(), Confirmation::stale);
  std::vector<size_t> places;
  json::array items;
  for (size_t i = 0; i < statuses.size(); ++i) {
    auto seen = co_await plane.leases.show(statuses[i].camera, caller.tenant);
    if (!seen && seen.error().code != Errc::not_found) co_return std::move(seen).error();
    auto version = seen ? speaks_under(statuses[i], seen->row, caller) : std::nullopt;
    if (!version) continue;
    std::string id = event::make_event_id(plane.clock.wall(), random_hex(8));
    items.push_back(write_status_event(statuses[i], seen->row, *version, std::move(id)));
    places.push_back(i);
  }
  if (!items.empty()) {
    CO_TRY(events, read_events(json::value(json::object{{"items", std::move(items)}}), caller));
    CO_TRY(told, co_await append(plane, std::move(events), caller, request));
    for (size_t i = 0; i < places.size(); ++i) answers[places[i]] = told[i];
  }
  net::Response response;
  response.status = 202;
  response.body = write_status_answers(statuses, answers);
  co_return std::move(response);
}

// ---- listening ----

constexpr std::string_view kNow = "now";

// Where the client wants to begin. The header is what a browser sends when it reconnects to the same address, so it is
// newer than what the address says.
Result<std::string> asked_cursor(const net::Request& request) {
  std::string_view header = request.header("last-event-id");
  std::string text = header.empty() ? request.query_value("after").value_or("") : std::string(header);
  if (text.empty() || text == "0" || text == kNow || parse_cursor(text)) return text;
  return bad_field(header.empty() ? "after" : "Last-Event-ID",
                   "must be the cursor of an event, 0 for the oldest, or now for those that come");
}

Result<event::TopicPattern> asked_pattern(const net::Request& request) {
  auto pattern = request.query_value("pattern");
  return event::TopicPattern::create(pattern && !pattern->empty() ? *pattern : "#");
}

struct Begin {
  EventPlace after;
  std::optional<std::string> gap;
};

// A cursor that this store cannot continue from is never ignored: what is kept is sent from its oldest, with a notice.
asio::awaitable<Result<Begin>> begin_at(Plane& plane, std::string cursor) {
  CO_TRY(newest, co_await plane.events.newest());
  if (cursor.empty() || cursor == kNow) co_return Begin{newest, {}};
  CO_TRY(oldest, co_await plane.events.read(0, 1));
  EventPlace first{oldest.epoch, oldest.forgotten_to};
  if (cursor == "0") co_return Begin{first, {}};
  EventPlace wanted = *parse_cursor(cursor);
  if (wanted.epoch != oldest.epoch || wanted.sequence > newest.sequence)
    co_return Begin{first, "the cursor is not of this store's present epoch"};
  if (wanted.sequence < oldest.forgotten_to)
    co_return Begin{first, "events after the last one received are no longer kept"};
  co_return Begin{wanted, {}};
}

constexpr int kReadsMax = 20;  // pages of the log looked at for one page of a rare pattern

Reply list_events(Plane& plane, const net::Request& request, const Caller& caller, event::TopicPattern pattern,
                  std::string cursor) {
  CO_TRY(page, read_page(request));
  if (cursor.empty()) cursor = "0";
  CO_TRY(begin, co_await begin_at(plane, std::move(cursor)));
  std::string items;
  int found = 0;
  bool at_end = false;
  auto full = [&] { return found == page.limit || items.size() >= kEventPageBytes; };
  for (int reads = 0; !at_end && !full() && reads < kReadsMax; ++reads) {
    CO_TRY(read, co_await plane.feed.read_behind(begin.after.sequence, kLimitMax));
    for (const StoredEvent& event : read.events) {
      begin.after.sequence = event.sequence;
      if ((!caller.tenant.empty() && event.tenant != caller.tenant) || !pattern.matches(event.routing_key)) continue;
      items += (found++ > 0 ? "," : "") + write_event_item(event, read.epoch);
      if (full()) break;
    }
    if (full()) break;
    begin.after.sequence = std::max(begin.after.sequence, read.scanned_to);
    at_end = !read.more;
  }
  net::Response response;
  response.body = fmt::format(R"({{"items":[{}],"next_cursor":"{}","at_end":{},"gap":{}}})", items,
                              cursor_text(begin.after), at_end, begin.gap.has_value());
  co_return std::move(response);
}

Reply listen_to(Plane& plane, const net::Request& request, const Caller& caller, event::TopicPattern pattern) {
  CO_TRY(cursor, asked_cursor(request));
  CO_TRY(follow, query_flag(request, "follow"));
  if (!follow.value_or(true))
    co_return co_await list_events(plane, request, caller, std::move(pattern), std::move(cursor));
  CO_TRY(begin, co_await begin_at(plane, std::move(cursor)));
  auto listener = std::make_shared<Listener>(Listener{std::move(pattern), caller.tenant, begin.after, begin.gap,
                                                      caller.expires, caller.sub});
  net::Response response;
  response.stream = [&plane, listener](net::EventStream& out) { return plane.feed.serve(std::move(*listener), out); };
  co_return std::move(response);
}

Reply listen(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(pattern, asked_pattern(request));
  co_return co_await listen_to(plane, request, caller, std::move(pattern));
}

Reply listen_to_leases(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(pattern, event::TopicPattern::create("lease.#"));
  co_return co_await listen_to(plane, request, caller, std::move(pattern));
}

}  // namespace

void add_event_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, Method::post, "/v1/events/batch", kPublishers, publish);
  add_guarded(router, plane, Method::post, "/v1/streams/status/batch", kSpeakers, publish_statuses);
  add_guarded(router, plane, Method::get, "/v1/events", kReadersAndRunners, listen);
  add_guarded(router, plane, Method::get, "/v1/leases/events", kReadersAndRunners, listen_to_leases);
}

}  // namespace weir::control_plane
