#include "open_store.hpp"

#include "weir/postgres/store.hpp"
#include "weir/sqlite/store.hpp"

namespace weir::apps {

namespace {
// No second control plane opens its file, so pictures stay in this one's memory.
struct SqliteOnly {
  std::unique_ptr<sqlite::SqliteStore> store;
  MemoryPictures pictures = {};
};

template <class Store>
OpenStore opened(std::shared_ptr<void> owner, Store* store, Pictures* pictures, std::string kind, std::string_view url) {
  return {std::move(owner), store, &store->catalog(), store, store, pictures, std::move(kind), redact_url(url)};
}
}  // namespace

Result<OpenStore> open_store(const Secret& url, int pool_size, LeaseLimits limits) {
  const std::string& text = url.reveal();
  if (text.starts_with("sqlite:") && text.size() > 7) {
    TRY(store, sqlite::SqliteStore::open({.path = text.substr(7), .limits = limits}));
    auto both = std::make_shared<SqliteOnly>(SqliteOnly{std::move(store)});
    return opened(both, both->store.get(), &both->pictures, "sqlite", text);
  }
  if (text.starts_with("postgres://") || text.starts_with("postgresql://")) {
    TRY(store, postgres::PostgresStore::open({.url = url, .pool_size = pool_size, .limits = limits}));
    std::shared_ptr<postgres::PostgresStore> shared(std::move(store));
    return opened(shared, shared.get(), shared.get(), "postgres", text);
  }
  return Error{Errc::invalid, "bad_setting", "database_url must be sqlite:PATH or postgres://USER@HOST/DATABASE"};
}

}  // namespace weir::apps
