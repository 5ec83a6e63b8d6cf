// Statements about published streams on one session. Private to this folder; throws PgFailure.
#pragma once

#include "connection.hpp"

#include "weir/ports/streams.hpp"

namespace weir::postgres {

Result<StreamRecord> put_stream(Connection& c, StreamRecord stream);
Result<Nothing> tell_stream(Connection& c, const StreamTold& told);
std::vector<StreamRecord> list_streams(Connection& c, const TenantId& tenant, const SubjectId& after, int limit);
Result<StreamRecord> show_stream(Connection& c, const SubjectId& id, const TenantId& tenant);
Result<Nothing> remove_stream(Connection& c, const SubjectId& id, const TenantId& tenant);

}  // namespace weir::postgres
