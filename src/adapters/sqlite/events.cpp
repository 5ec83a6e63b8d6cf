// The event log: the fence and the insert share the writer's transaction, so no version change comes between them.
#include "rows.hpp"

#include "weir/lease/decide.hpp"
#include "weir/sqlite/core.hpp"

#include <map>

namespace weir::sqlite {

bool Core::store_event(const event::Event& event, const TenantId& tenant) {
  Query q = db_->query(
      "INSERT INTO events(event_id, tenant_id, topic, routing_key, payload, stored_at) VALUES (?, ?, ?, ?, ?, ?) "
      "ON CONFLICT (event_id) DO NOTHING");
  q << event.event_id << tenant << event.topic << event.routing_key << event.payload << clock_();
  return q.run() > 0;
}

bool Core::knows_event(const std::string& event_id) {
  Query q = db_->query("SELECT 1 FROM events WHERE event_id = ?");
  q << event_id;
  return q.next();
}

std::vector<Confirmation> Core::append(const std::vector<event::Event>& events, const EventSpeaker& speaker) {
  std::map<CameraId, std::optional<lease::LeaseRow>> rows;
  auto row_of = [&](const CameraId& camera) -> const std::optional<lease::LeaseRow>& {
    auto [at, added] = rows.try_emplace(camera);
    if (!added) return at->second;
    Query q = db_->query("SELECT " WEIR_LEASE_COLUMNS " FROM leases l WHERE l.camera_uuid = ?");
    q << camera;
    if (q.next()) at->second = lease_row(q);
    return at->second;
  };
  auto accepts = [&](const lease::LeaseRow& row, const event::Stamp& stamp) {
    if (row.cluster.empty())
      return lease::fence_accepts(row, speaking_owner(speaker, row), stamp.version, state_.epoch);
    const auto& cluster = row_of(row.cluster);
    return cluster &&
           lease::fence_accepts(row, *cluster, speaking_owner(speaker, *cluster), stamp.version, state_.epoch);
  };
  auto judge = [&](const event::Event& event) {
    TenantId tenant = speaker.tenant;
    if (event.stamp) {
      const auto& row = row_of(event.stamp->camera);
      bool fits = row && (speaker.tenant.empty() || row->tenant == speaker.tenant) && accepts(*row, *event.stamp);
      if (!fits) return knows_event(event.event_id) ? Confirmation::duplicate : Confirmation::stale;
      tenant = row->tenant;
    }
    return store_event(event, tenant) ? Confirmation::accepted : Confirmation::duplicate;
  };
  std::vector<Confirmation> answers;
  answers.reserve(events.size());
  for (const event::Event& event : events) answers.push_back(judge(event));
  return answers;
}

void Core::announce(const std::vector<event::Event>& announcements) {
  auto is_over = [&](const event::Stamp& stamp) {
    Query q = db_->query(
        "SELECT 1 FROM leases l WHERE l.camera_uuid = ? AND l.version = ? AND NOT EXISTS (SELECT 1 FROM leases s "
        "WHERE s.camera_uuid = l.cluster AND s.kind = 'cluster' AND s.version > l.version)");
    q << stamp.camera << stamp.version.n;
    return !q.next();
  };
  for (const event::Event& each : announcements)
    if (!each.stamp || !is_over(*each.stamp)) store_event(each, each.tenant);
}

std::int64_t Core::trim(const EventRetention& retention, int most) {
  WallTime now = clock_();
  std::int64_t to = 0;
  {
    Query q = db_->query(
        "SELECT coalesce(max(sequence), 0) FROM (SELECT sequence, stored_at FROM events ORDER BY sequence LIMIT ?1) "
        "WHERE stored_at < ?2 OR "
        "((stored_at < ?3 OR stored_at > ?5) AND sequence <= (SELECT max(sequence) FROM events) - ?4)");
    q << most << now - retention.age << now - kEventsRemembered << retention.events_max << now + kEventsFromTheFuture;
    q.next();
    to = q.integer(0);
  }
  if (to == 0) return 0;
  {
    Query q = db_->query("UPDATE event_state SET forgotten_to = ?");
    q << to;
    q.run();
  }
  Query q = db_->query("DELETE FROM events WHERE sequence <= ?");
  q << to;
  return q.run();
}

std::int64_t Core::Reader::last_event() {
  Query q = db_->query("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)");
  q.next();
  return q.integer(0);
}

EventPage Core::Reader::read_events(std::int64_t after, int limit, std::int64_t epoch) {
  EventPage page;
  page.epoch = epoch;
  // Looked at first: what is stored up to there is seen below. A duplicate's number never comes as an event.
  page.scanned_to = std::max(after, last_event());
  {
    Query q = db_->query(
        "SELECT sequence, tenant_id, topic, routing_key, payload, stored_at FROM events WHERE sequence > ? "
        "ORDER BY sequence LIMIT ?");
    q << after << limit;
    size_t bytes = 0;
    while (!page.more && q.next()) {
      StoredEvent& kept = page.events.emplace_back();
      kept.sequence = q.integer(0);
      kept.tenant = q.id<TenantId>(1);
      kept.topic = q.text(2);
      kept.routing_key = q.text(3);
      kept.payload = q.text(4);
      kept.stored_at = q.wall(5);
      bytes += kept.payload.size();
      page.more = static_cast<int>(page.events.size()) == limit || bytes >= kEventPageBytes;
    }
  }
  if (page.more) page.scanned_to = page.events.back().sequence;
  else if (!page.events.empty()) page.scanned_to = std::max(page.scanned_to, page.events.back().sequence);
  // Looked at last: what was forgotten while the page was read shows.
  Query q = db_->query("SELECT forgotten_to FROM event_state");
  q.next();
  page.forgotten_to = q.integer(0);
  return page;
}

}  // namespace weir::sqlite
