// The tables of the embedded store, as numbered steps that bring any older file up to date. Private to this folder.
#pragma once

#include "db.hpp"

namespace weir::sqlite {

std::int64_t newest_step();
// Throws when the step is of a newer Weir.
void check_known(std::int64_t step);
// Applies the steps that the file has not seen yet, each in its own transaction. Throws when the file is of a newer
// Weir, or sealed. Tests stop at an older step.
void migrate(Db& db, size_t to = SIZE_MAX);

}  // namespace weir::sqlite
