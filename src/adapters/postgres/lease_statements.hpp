// The lease protocol's rules as SQL: one statement a batch. Private to this folder.
//
// These say in SQL what domain/lease/decide.cpp says in C++; a differential test holds them together. Each locks its
// rows in camera order, judges them as they are once locked, and draws versions only after that. A camera that does
// not exist has no row in the answer; the others have the columns that leases.cpp names.
#pragma once

namespace weir::postgres {

// $1 cameras, $2 keys, $3 runner, $4 boot, $5 ttl, $6 tenant, $7 how long a runner lives after a heartbeat
extern const char* const kAcquire;
// $1 cameras, $2 versions (-1: none given), $3 runner, $4 boot, $5 ttl, $6 tenant
extern const char* const kRenew;
// the same and $7 rotate flags, $8 keys
extern const char* const kRotate;
// $1 cameras, $2 versions, $3 runner, $4 boot, $5 avoid flags, $6 tenant, $7 runner's life
extern const char* const kRelease;

}  // namespace weir::postgres
