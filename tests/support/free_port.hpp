// Free ports for servers that tests start. Any thread.
#pragma once

namespace weir::test {

// A port of the loopback that no server has, and that no other test is given while this process runs.
int free_port();

}  // namespace weir::test
