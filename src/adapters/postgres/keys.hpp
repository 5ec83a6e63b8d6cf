// API key statements on one session. Private to this folder; throws PgFailure. One thread.
#pragma once

#include "connection.hpp"

#include "weir/ports/keys.hpp"

namespace weir::postgres {

Result<ApiKey> add_key(Connection& c, const ApiKey& key, const std::string& secret_sha256);
std::vector<ApiKey> list_keys(Connection& c, const TenantId& tenant, const KeyId& after, int limit);
Result<Nothing> revoke_key(Connection& c, const KeyId& id, const TenantId& tenant);
Result<ApiKey> find_key(Connection& c, const std::string& secret_sha256);

}  // namespace weir::postgres
