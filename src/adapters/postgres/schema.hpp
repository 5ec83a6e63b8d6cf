// The tables and functions of the PostgreSQL store, as numbered steps. Private to this folder.
#pragma once

#include "connection.hpp"

namespace weir::postgres {

std::int64_t newest_step();
// Brings the database up to date. Several control planes may start at once: one does the work, the others wait.
// Throws PgFailure, also when the database is of a newer Weir. Tests stop at an older step.
void migrate(Connection& c, size_t to = SIZE_MAX);

}  // namespace weir::postgres
