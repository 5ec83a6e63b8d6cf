// The event log and the keys of the fake.
#include "fake_store.hpp"

namespace weir::test {

// ---- events ----

bool FakeEventLog::accepts(const lease::LeaseRow& row, const EventSpeaker& speaker, lease::Version stamped) const {
  std::int64_t epoch = rows_.state.epoch;
  if (row.cluster.empty()) return lease::fence_accepts(row, speaking_owner(speaker, row), stamped, epoch);
  auto cluster = rows_.leases.find(row.cluster);
  return cluster != rows_.leases.end() &&
         lease::fence_accepts(row, cluster->second, speaking_owner(speaker, cluster->second), stamped, epoch);
}

// Whether an announcement about an owner under this version comes too late: another may have been heard since.
bool FakeEventLog::is_over(const event::Stamp& stamp) const {
  auto row = rows_.leases.find(stamp.camera);
  if (row == rows_.leases.end() || row->second.version != stamp.version) return true;
  auto cluster = rows_.leases.find(row->second.cluster);
  return cluster != rows_.leases.end() && cluster->second.kind == lease::Kind::cluster &&
         cluster->second.version > stamp.version;
}

Confirmation FakeEventLog::append_now(const event::Event& event, const EventSpeaker& speaker) {
  if (rows_.event_ids.contains(event.event_id)) return Confirmation::duplicate;
  TenantId tenant = speaker.tenant;
  if (event.stamp) {
    auto row = rows_.leases.find(event.stamp->camera);
    if (row == rows_.leases.end() || (!speaker.tenant.empty() && row->second.tenant != speaker.tenant) ||
        !accepts(row->second, speaker, event.stamp->version))
      return Confirmation::stale;
    tenant = row->second.tenant;
  }
  std::int64_t sequence = ++rows_.last_event;
  StoredEvent& stored = rows_.events[sequence] = {event, sequence, clock_()};
  stored.tenant = tenant;
  rows_.event_ids[event.event_id] = sequence;
  return Confirmation::accepted;
}

Async<std::vector<Confirmation>> FakeEventLog::append(std::vector<event::Event> events, EventSpeaker speaker) {
  std::vector<Confirmation> answers;
  for (const event::Event& event : events) answers.push_back(append_now(event, speaker));
  co_return answers;
}

Async<Nothing> FakeEventLog::announce(std::vector<event::Event> announcements) {
  for (const event::Event& each : announcements) {
    if (each.stamp && is_over(*each.stamp)) continue;
    event::Event unfenced = each;
    unfenced.stamp.reset();
    append_now(unfenced, {{}, {}, each.tenant});
  }
  co_return ok();
}

Async<EventPage> FakeEventLog::read(std::int64_t after, int limit) {
  EventPage page{{}, std::max(after, rows_.last_event), rows_.forgotten_to, rows_.state.epoch};
  size_t bytes = 0;
  for (auto at = rows_.events.upper_bound(after); at != rows_.events.end(); ++at) {
    page.events.push_back(at->second);
    bytes += at->second.payload.size();
    page.more = static_cast<int>(page.events.size()) == limit || bytes >= kEventPageBytes;
    if (!page.more) continue;
    page.scanned_to = at->first;
    break;
  }
  co_return page;
}

Async<EventPlace> FakeEventLog::newest() { co_return EventPlace{rows_.state.epoch, rows_.last_event}; }

Async<std::int64_t> FakeEventLog::trim(EventRetention retention, int most) {
  std::int64_t forgotten = 0;
  while (!rows_.events.empty() && forgotten < most) {
    const StoredEvent& oldest = rows_.events.begin()->second;
    Duration age = clock_() - oldest.stored_at;
    bool too_many = oldest.sequence <= rows_.last_event - retention.events_max &&
                    (age > kEventsRemembered || age < -kEventsFromTheFuture);
    if (age <= retention.age && !too_many) break;
    rows_.forgotten_to = oldest.sequence;
    std::erase_if(rows_.event_ids, [&](const auto& each) { return each.second == rows_.forgotten_to; });
    rows_.events.erase(rows_.events.begin());
    ++forgotten;
  }
  co_return forgotten;
}

// ---- keys ----

Async<ApiKey> FakeKeys::add_key(ApiKey key, std::string secret_sha256) {
  if (!key.tenant.empty() && !rows_.tenants.contains(key.tenant)) co_return no_such("tenant", "tenant_id");
  if (rows_.keys.contains(key.id) || !rows_.key_hashes.try_emplace(secret_sha256, key.id).second)
    co_return exists_already("key", "key_id");
  key.created_at = clock_();
  key.last_used_at = {};
  rows_.keys[key.id] = key;
  co_return key;
}
Async<std::vector<ApiKey>> FakeKeys::list_keys(TenantId tenant, KeyId after, int limit) {
  std::vector<ApiKey> out;
  for (auto at = rows_.keys.upper_bound(after); at != rows_.keys.end() && static_cast<int>(out.size()) < limit; ++at)
    if (!foreign(tenant, at->second.tenant)) out.push_back(at->second);
  co_return out;
}
Async<Nothing> FakeKeys::revoke_key(KeyId id, TenantId tenant) {
  auto at = rows_.keys.find(id);
  if (at == rows_.keys.end() || foreign(tenant, at->second.tenant)) co_return no_such("key", "key_id");
  rows_.keys.erase(at);
  co_return ok();
}
Async<ApiKey> FakeKeys::find_key(std::string secret_sha256) {
  auto hash = rows_.key_hashes.find(secret_sha256);
  auto at = hash == rows_.key_hashes.end() ? rows_.keys.end() : rows_.keys.find(hash->second);
  if (at == rows_.keys.end()) co_return no_such("key", "key_id");
  if (worth_noting(at->second, clock_())) at->second.last_used_at = clock_();
  co_return at->second;
}

}  // namespace weir::test
