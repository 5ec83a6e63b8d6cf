// The tables of the embedded store, as numbered steps that bring any older file up to date. Private to this folder.
#pragma once

#include "db.hpp"

namespace weir::sqlite {

// Applies the steps that the file has not seen yet, each in its own transaction. Throws when the file is of a newer
// Weir. Tests stop at an older step.
void migrate(Db& db, size_t to = SIZE_MAX);

}  // namespace weir::sqlite
