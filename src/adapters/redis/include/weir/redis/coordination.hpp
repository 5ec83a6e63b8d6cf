// RedisCoordination: Coordination over one Redis, with hiredis.
//
// One thread owns the client library. It holds one connection for questions, which are sent without waiting for each
// other's answers, and one for listening; both are made when they are first needed and made again after a pause. A
// question that is not answered within its time fails, and a connection that leaves one unanswered is given up. The
// loop is never blocked. What is under way when the coordination is destroyed is answered with an error; that waits for
// the thread, which may be connecting just then. There is no TLS: where the network is not trusted, a tunnel must carry
// the connection. Loop thread only.
#pragma once

#include "weir/base/secret.hpp"
#include "weir/base/time.hpp"
#include "weir/ports/coordination.hpp"

#include <boost/asio/any_io_executor.hpp>

namespace weir::redis {

struct Config {
  std::string host = "localhost";
  int port = 6379;
  Secret password = {};            // empty: none is asked for
  Duration connect_within = 1s;
  Duration answer_within = 2s;
  size_t questions_max = 20'000;   // that wait or are under way
  size_t heard_max = 10'000;       // that wait for one listener
  int detections_max = 10'000;     // kept, roughly: Redis drops the oldest in blocks
};

std::unique_ptr<Coordination> make_coordination(boost::asio::any_io_executor loop, Config config);

}  // namespace weir::redis
