#include "open_store.hpp"

#include "weir/postgres/store.hpp"
#include "weir/sqlite/store.hpp"

namespace weir::apps {

namespace {
template <class Store>
OpenStore opened(std::unique_ptr<Store> store, std::string kind, std::string_view url) {
  std::shared_ptr<Store> shared(std::move(store));
  return {shared, shared.get(), shared.get(), shared.get(), shared.get(), std::move(kind), redact_url(url)};
}
}  // namespace

Result<OpenStore> open_store(const Secret& url, int pool_size, LeaseLimits limits) {
  const std::string& text = url.reveal();
  if (text.starts_with("sqlite:") && text.size() > 7) {
    TRY(store, sqlite::SqliteStore::open({.path = text.substr(7), .limits = limits}));
    return opened(std::move(store), "sqlite", text);
  }
  if (text.starts_with("postgres://") || text.starts_with("postgresql://")) {
    TRY(store, postgres::PostgresStore::open({.url = url, .pool_size = pool_size, .limits = limits}));
    return opened(std::move(store), "postgres", text);
  }
  return Error{Errc::invalid, "bad_setting", "database_url must be sqlite:PATH or postgres://USER@HOST/DATABASE"};
}

}  // namespace weir::apps
