// PostgresStore: the store of an installation that has outgrown one machine. Any number of control planes may share it.
//
// A small pool of threads, each with a session of its own; prepared statements; a lost session is opened again with a
// short pause, and meanwhile every call fails at once instead of queueing. Statements give up after 0.8 s on the
// server and shortly after on this side. The schema is brought up to date on the first session.
// The destructor fails what still waits and joins the threads.
#pragma once

#include "weir/base/blocking.hpp"
#include "weir/base/secret.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/keys.hpp"
#include "weir/ports/lease_store.hpp"
#include "weir/ports/pictures.hpp"

#include <memory>
#include <string>

namespace weir::postgres {

struct Config {
  Secret url;                // postgres://user:password@host:port/database
  int pool_size = 16;  // commits that run at once share a flush of the disk
  LeaseLimits limits = {};
};

class PostgresStore final : public LeaseStore, public EventLog, public Keys, public Pictures {
 public:
  // Also succeeds while the server is away: calls then answer `unavailable` until it is back. Fails on a URL that
  // cannot be read and on a schema of a newer Weir.
  static Result<std::unique_ptr<PostgresStore>> open(Config config);
  ~PostgresStore() override;
  PostgresStore(const PostgresStore&) = delete;

  Catalog& catalog();  // lives as long as the store

  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override;
  Async<TickReport> tick() override;
  Async<LeaseView> revoke(CameraId camera, TenantId tenant) override;
  Async<std::vector<lease::LeaseRow>> release_all(lease::Owner owner, std::string will_sha256) override;
  Async<std::vector<lease::LeaseRow>> take_expired(int most) override;
  Async<std::vector<LeaseView>> list(LeaseFilter filter) override;
  Async<LeaseView> show(CameraId camera, TenantId tenant) override;
  Async<LeaseView> note(LeaseWord word, TenantId tenant) override;
  Async<BudgetAnswer> consume(SiteId site, TenantId tenant, std::optional<BudgetUse> use) override;

  Async<std::vector<Confirmation>> append(std::vector<event::Event> events, EventSpeaker speaker) override;
  Async<Nothing> announce(std::vector<event::Event> announcements) override;
  Async<EventPage> read(std::int64_t after, int limit) override;
  Async<EventPlace> newest() override;
  Async<std::int64_t> trim(EventRetention retention, int most) override;

  Async<ApiKey> add_key(ApiKey key, std::string secret_sha256) override;
  Async<std::vector<ApiKey>> list_keys(TenantId tenant, KeyId after, int limit) override;
  Async<Nothing> revoke_key(KeyId id, TenantId tenant) override;
  Async<ApiKey> find_key(std::string secret_sha256) override;

  Async<Nothing> put_picture(CameraId camera, SnapshotPicture picture) override;
  Async<std::optional<SnapshotPicture>> find_picture(CameraId camera, std::string request) override;

  // The statement of a plain renewal, for benchmarks that send it to the server directly.
  static const char* renew_statement();

 private:
  struct State;
  class CatalogPort;
  explicit PostgresStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  std::unique_ptr<CatalogPort> catalog_;
};

}  // namespace weir::postgres
