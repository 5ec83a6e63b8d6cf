// API key statements that write, within the caller's transaction. Private to this folder; throws SqliteFailure.
// One thread.
#pragma once

#include "db.hpp"

#include "weir/ports/keys.hpp"

namespace weir::sqlite {

Result<ApiKey> add_key(Db& db, WallTime now, ApiKey key, const std::string& secret_sha256);
Result<Nothing> revoke_key(Db& db, const KeyId& id, const TenantId& tenant);
Result<ApiKey> find_key(Db& db, WallTime now, const std::string& secret_sha256);

}  // namespace weir::sqlite
