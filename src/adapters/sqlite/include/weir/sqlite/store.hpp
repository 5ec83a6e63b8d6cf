// SqliteStore: the embedded default. One file, one writer thread with group commit, one reader thread.
//
// Write-ahead log with synchronous=FULL: what was answered is on the disk. Jobs that wait while a commit is flushed
// share the next one. A lock beside the file keeps a second control plane out. The destructor fails what
// still waits and joins both threads.
#pragma once

#include "weir/base/blocking.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/keys.hpp"
#include "weir/ports/lease_store.hpp"

#include <memory>
#include <string>

namespace weir::sqlite {

struct Config {
  std::string path;          // ":memory:" for tests
  LeaseLimits limits = {};
};

class SqliteStore final : public LeaseStore, public EventLog, public Keys {
 public:
  static Result<std::unique_ptr<SqliteStore>> open(Config config);
  ~SqliteStore() override;
  SqliteStore(const SqliteStore&) = delete;

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

 private:
  struct State;
  class CatalogPort;
  explicit SqliteStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  std::unique_ptr<CatalogPort> catalog_;
};

}  // namespace weir::sqlite
