// The seal on a file: it holds a store, but none that a control plane may serve. Private to this folder.
//
// A sealed file's schema number is beyond that of any Weir, so that older ones refuse it too, as of a newer Weir; this
// one repeats the sentence that the seal holds. Db's thread.
#pragma once

#include "db.hpp"

#include "weir/sqlite/copy.hpp"

namespace weir::sqlite {

// The schema step of the file, sealed or not.
std::int64_t schema_step(Db& db);
std::optional<Seal> seal_of(Db& db);
void set_seal(Db& db, const Seal& seal);
void lift_seal(Db& db);

}  // namespace weir::sqlite
