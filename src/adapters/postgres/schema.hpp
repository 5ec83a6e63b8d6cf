// The tables and functions of the PostgreSQL store, as numbered steps. Private to this folder.
#pragma once

#include "connection.hpp"

namespace weir::postgres {

std::int64_t newest_step();

// PostgreSQL's word for what a role may not do.
inline constexpr std::string_view kMayNot = "42501";

// Brings the database up to date and returns the step it was at. Several control planes may start at once: one does the
// work, the others wait. A role that may not make tables is enough where there is nothing to do.
// Throws PgFailure, also when the database is of a newer Weir. Tests stop at an older step.
std::int64_t migrate(Connection& c, size_t to = SIZE_MAX);

}  // namespace weir::postgres
