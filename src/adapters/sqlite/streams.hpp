// Statements about published streams that write, within the caller's transaction. Private to this folder; throws
// SqliteFailure. One thread.
#pragma once

#include "db.hpp"

#include "weir/ports/streams.hpp"

namespace weir::sqlite {

Result<StreamRecord> put_stream(Db& db, WallTime clock, StreamRecord stream);
Result<Nothing> tell_stream(Db& db, WallTime clock, std::int64_t epoch, const StreamTold& told);
Result<Nothing> remove_stream(Db& db, LeaseTime now, const SubjectId& id, const TenantId& tenant);

}  // namespace weir::sqlite
