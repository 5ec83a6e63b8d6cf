// The leases of the fake.
#include "fake_store.hpp"

#include <algorithm>

namespace weir::test {

using lease::LeaseRow;

class FakeLeases::Access final : public lease::Rows {
 public:
  explicit Access(FakeLeases& store) : s_(store), r_(store.rows_) {}
  std::optional<LeaseRow> find(const CameraId& camera) override {
    auto at = r_.leases.find(camera);
    if (at == r_.leases.end()) return std::nullopt;
    return at->second;
  }
  void save(const LeaseRow& row) override { r_.leases[row.subject] = row; }
  bool boot_dead(const lease::Owner& owner) override {
    auto at = r_.boots.find(owner);
    return at != r_.boots.end() && at->second.dead;
  }
  bool cordoned(const RunnerId& runner) override {
    auto at = r_.runners.find(runner);
    return at != r_.runners.end() && (at->second.cordoned || at->second.drain != DrainMode::none);
  }
  bool avoided(const CameraId& camera, const RunnerId& runner, LeaseTime now) override {
    auto at = r_.avoids.find({camera, runner});
    return at != r_.avoids.end() && at->second.first > now;
  }
  bool other_eligible(const CameraId& camera, const RunnerId& runner, LeaseTime now) override {
    const LeaseRow& row = r_.leases.at(camera);
    bool ran_out = !row.released && row.expires <= now;
    return std::ranges::any_of(r_.runners, [&](const auto& entry) {
      const Runner& other = entry.second;
      return other.id != runner && !cordoned(other.id) && r_.heartbeats[other.id] > now - s_.limits_.runner_live &&
             (other.tenant.empty() || other.tenant == row.tenant) && (other.site.empty() || other.site == row.site) &&
             s_.held_by(other.id) < other.capacity && !(ran_out && row.owner.runner == other.id) &&
             !avoided(camera, other.id, now);
    });
  }
  void add_avoid(const CameraId& camera, const RunnerId& runner, LeaseTime now) override {
    auto& [until, strikes] = r_.avoids[{camera, runner}];
    until = now + lease::avoid_duration(++strikes);
  }
  void empty_buckets(LeaseTime now) override {
    for (auto& [id, site] : r_.sites) {
      site.budget.tokens = 0;
      site.budget.updated = now;
    }
  }

 private:
  FakeLeases& s_;
  FakeRows& r_;
};

int FakeTables::held_by(const RunnerId& runner) const {
  return static_cast<int>(std::ranges::count_if(
      rows_.leases, [&](const auto& entry) {
        const LeaseRow& row = entry.second;
        return row.kind == lease::Kind::camera && row.owner.runner == runner && !row.released;
      }));
}

bool FakeLeases::tick_now() {
  Duration longest{0};
  for (const auto& [camera, row] : rows_.leases)
    if (!row.released) longest = std::max(longest, row.ttl);
  bool hold = lease::tick(rows_.state, clock_(), longest);
  hold_opened_ |= hold;
  return hold;
}

lease::Applied FakeLeases::apply_now(const lease::Batch& batch) {
  Access access(*this);
  auto applied = lease::apply(access, rows_.state, batch, clock_(), limits_.ttl_max);
  epoch_opened_ |= applied.epoch_opened;
  return applied;
}

void FakeLeases::open_epoch_now() {
  Access access(*this);
  lease::open_epoch(rows_.state, now(), limits_.ttl_max);
  access.empty_buckets(now());
}

Result<std::vector<LeaseRow>> FakeLeases::release_all_now(const lease::Owner& owner, const std::string& will_sha256) {
  auto boot = rows_.boots.find(owner);
  if (boot == rows_.boots.end() || boot->second.will_sha256.empty() || boot->second.will_sha256 != will_sha256)
    return Error{Errc::unauthorized, "will_refused", "this boot's last will was not signed with its secret"};
  FakeBoot& known = boot->second;
  if (!known.dead) known.will_after = lease::Version::make(rows_.state.epoch, rows_.state.counter);
  known.dead = true;
  if (auto runner = rows_.runners.find(owner.runner); runner != rows_.runners.end() && runner->second.boot == owner.boot)
    rows_.heartbeats[owner.runner] = LeaseTime(-24h);
  std::vector<LeaseRow> released;
  for (auto& [camera, row] : rows_.leases) {
    if (row.owner != owner) continue;
    if (!row.released) {
      row.version = draw();
      row.released = true;
      row.last_key.clear();
    }
    if (!row.revoked && row.version > known.will_after) released.push_back(row);
  }
  return released;
}

std::vector<LeaseRow> FakeLeases::take_expired_now(int most) {
  std::vector<LeaseRow> taken;
  lease::Moment moment = lease::moment_of(rows_.state, clock_());
  if (!lease::settled(moment)) return taken;
  for (const auto& [camera, row] : rows_.leases) {
    if (static_cast<int>(taken.size()) == most) break;
    if (row.released || row.expires > moment.now || rows_.expiries_told[camera] == row.expires) continue;
    rows_.expiries_told[camera] = row.expires;
    taken.push_back(row);
  }
  return taken;
}

Result<BudgetAnswer> FakeLeases::consume_now(const SiteId& site, const TenantId& tenant,
                                            const std::optional<BudgetUse>& use) {
  auto at = rows_.sites.find(site);
  if (at == rows_.sites.end() || foreign(tenant, at->second.tenant)) return no_such("site", "site_id");
  bucket::Bucket present = bucket::refilled(at->second.budget, now());
  if (use) {
    auto row = rows_.leases.find(use->camera);
    if (row == rows_.leases.end() || row->second.site != site) return no_such("camera", "camera_uuid");
    auto used = rows_.budget_uses.find(use->camera);
    if (used != rows_.budget_uses.end() && used->second == use->grant)
      return BudgetAnswer{true, present.tokens, present.capacity};
  }
  bucket::Consumed consumed = bucket::consume(present, now());
  at->second.budget = consumed.next;
  if (use && consumed.granted) rows_.budget_uses[use->camera] = use->grant;
  return BudgetAnswer{consumed.granted, consumed.next.tokens, consumed.next.capacity, consumed.retry_after};
}

Result<Nothing> FakeLeases::revoke_now(const CameraId& camera) {
  auto row = rows_.leases.find(camera);
  if (row == rows_.leases.end()) return no_such("camera", "camera_uuid");
  if (row->second.released) return ok();
  if (row->second.kind == lease::Kind::camera)
    rows_.avoids[{camera, row->second.owner.runner}] = {now() + lease::kRevokedAvoid, 0};
  row->second = lease::revoke(row->second, draw());
  return ok();
}

void FakeLeases::heartbeat_now(const RunnerId& id, int capacity) {
  Runner& runner = rows_.runners[id];
  runner.id = id;
  runner.capacity = capacity;
  rows_.heartbeats[id] = now();
}

void FakeLeases::add_camera_now(const CameraId& camera, const SiteId& site) {
  LeaseRow row{camera};
  row.site = site;
  rows_.leases[camera] = row;
}

LeaseView FakeLeases::view(const LeaseRow& row) const {
  auto note = rows_.notes.find({row.subject, row.grant});
  return {row, clock_() + (row.expires - now()), !row.released && row.expires <= now(),
          note == rows_.notes.end() ? LeaseNote{} : note->second};
}

Async<std::vector<lease::Answer>> FakeLeases::apply(lease::Batch batch) {
  tick_now();
  co_return apply_now(batch).answers;
}
Async<TickReport> FakeLeases::tick() {
  tick_now();
  TickReport report{hold_opened_, epoch_opened_, rows_.state.epoch};
  hold_opened_ = epoch_opened_ = false;
  co_return report;
}
Async<LeaseView> FakeLeases::revoke(CameraId camera, TenantId tenant) {
  auto row = rows_.leases.find(camera);
  if (row == rows_.leases.end() || foreign(tenant, row->second.tenant)) co_return no_such("camera", "camera_uuid");
  CO_TRY(done, revoke_now(camera));
  co_return view(row->second);
}
Async<std::vector<LeaseRow>> FakeLeases::release_all(lease::Owner owner, std::string will) {
  co_return release_all_now(owner, will);
}
Async<std::vector<LeaseRow>> FakeLeases::take_expired(int most) { co_return take_expired_now(most); }
Async<std::vector<LeaseView>> FakeLeases::list(LeaseFilter f) {
  std::vector<LeaseView> out;
  for (auto at = rows_.leases.upper_bound(f.after); at != rows_.leases.end(); ++at) {
    const LeaseRow& row = at->second;
    if (static_cast<int>(out.size()) == f.limit) break;
    if (foreign(f.tenant, row.tenant) || (!f.runner.empty() && row.owner.runner != f.runner) ||
        (!f.boot.empty() && row.owner.boot != f.boot) ||
        (f.only_held && row.released) || row.owner.runner.empty() || row.kind != f.kind)
      continue;
    out.push_back(view(row));
  }
  co_return out;
}
Async<LeaseView> FakeLeases::show(CameraId camera, TenantId tenant) {
  auto row = rows_.leases.find(camera);
  if (row == rows_.leases.end() || foreign(tenant, row->second.tenant)) co_return no_such("camera", "camera_uuid");
  co_return view(row->second);
}
Async<LeaseView> FakeLeases::note(LeaseWord word, TenantId tenant) {
  auto row = rows_.leases.find(word.subject);
  if (row == rows_.leases.end() || foreign(tenant, row->second.tenant)) co_return no_such("camera", "camera_uuid");
  if (row->second.grant == word.grant && !row->second.released) {
    LeaseNote& note = rows_.notes[{word.subject, word.grant}];
    if (!word.shard.empty()) note.shard = word.shard;
    if (!word.config_version.empty()) note.config_version = word.config_version;
    if (!word.zone_version.empty()) note.zone_version = word.zone_version;
    if (word.heartbeat) note.heard = clock_();
    if (word.stats) note.stats = *word.stats;
  }
  co_return view(row->second);
}
Async<BudgetAnswer> FakeLeases::consume(SiteId site, TenantId tenant, std::optional<BudgetUse> use) {
  tick_now();
  co_return consume_now(site, tenant, use);
}

}  // namespace weir::test
