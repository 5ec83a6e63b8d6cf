// A keeper is the process above one child of the orchestrator: the child lives on when the orchestrator dies, and ends
// when nobody extends its deadline.
//
//   weir-keeper NAME --folder=F --nonce=N --version=V --until-us=U --stop-grace-ms=G --backstop-ms=B -- COMMAND…
//
// The keeper is a session leader, and the kernel makes it the parent of every orphan below it (child subreaper), so
// that it knows when all of them are dead; only then does it end. It writes the child's end to the file F/N.exit,
// {"code":7,"ended_us":…}: an exit code, or 128 + signal, and CLOCK_BOOTTIME. At the deadline it kills the child and
// everything below it; B milliseconds later where the child knows its deadline itself, as a backstop.
//
// Whoever starts a keeper gives it these descriptors: 1 and 2, where the child's output goes; 3, where there is one,
// the child's document; 4, the open file with the nonce's lock, which the child and everything below it inherit, so that
// the lock is free only when all are dead; 5, a listening Unix socket. Lock and socket come from outside because they
// must be there before the keeper is: the orchestrator that starts after a crash looks for them at once. A process
// below that closes descriptor 4 is held by the keeper's own copy alone.
//
// On the socket the keeper speaks the protocol of a forwarder's lease socket, one JSON object a line, with the same
// user and root: {"version":V,"valid_until_us":U} extends the deadline, under a version that is not lower; {} asks;
// {"order":"stop"} sends SIGTERM to the child, and G milliseconds later SIGKILL to everything below; {"order":"kill"}
// does the latter at once. SIGHUP, SIGINT and SIGTERM do not end a keeper.
//
// It costs little: a static program without Boost, Asio and iostreams. Measured with 200 of them on Debian 12, each
// has 700 kB resident, 50 kB of which are its share (PSS). One thread.
#pragma once

namespace weir::keeper {

// Returns when everything below is dead: 0, or 2 where the arguments are wrong.
int keep(int argc, char** argv);

}  // namespace weir::keeper
