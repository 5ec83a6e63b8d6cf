// DialWatch: to which addresses this process connects, seen between the libraries and the system, where no library
// can hide it.
//
// While a peer is set, names are not resolved and other peers are not reached: each attempt fails and is written down.
// Only calls that a library makes through the dynamic linker are seen. Any thread.
#pragma once

#include <string>
#include <vector>

namespace weir::fuzz {

struct Dials {
  int to_peer = 0;                     // TCP connections
  std::vector<std::string> elsewhere;  // "connect 10.0.0.7:554", "resolve camera.local", …
};

// 127.0.0.1 and this TCP port from now on; any UDP port of it. 0 ends the watch.
void watch_dials(int port);
// What was dialled since the last call.
Dials take_dials();

}  // namespace weir::fuzz
