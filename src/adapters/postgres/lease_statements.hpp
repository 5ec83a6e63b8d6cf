// The rules of docs/lease-protocol.md as SQL: one statement a batch. Private to this folder.
//
// These say in SQL what domain/lease/decide.cpp says in C++; a differential test holds them together. Each locks its
// rows in the order of their ids, judges them as they are once locked, and draws versions only after that. A subject that
// does not exist, or is of another kind, has no row in the answer; the others have the columns that leases.cpp names.
#pragma once

namespace weir::postgres {

// $1 ids, $2 tenant, $3 site, $4 kind: rows for subjects that nobody has asked for before
extern const char* const kMake;
// $1 ids, $2 keys, $3 runner, $4 boot, $5 ttl, $6 tenant, $7 how long a runner lives after a heartbeat, $8 kind
extern const char* const kAcquire;
// $1 ids, $2 versions (-1: none given), $3 runner, $4 boot, $5 ttl, $6 tenant, $7 kind
extern const char* const kRenew;
// the first six of these, and $7 rotate flags, $8 keys, $9 kind
extern const char* const kRotate;
// $1 ids, $2 versions, $3 runner, $4 boot, $5 avoid flags, $6 tenant, $7 runner's life, $8 kind
extern const char* const kRelease;

}  // namespace weir::postgres
