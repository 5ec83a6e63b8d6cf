// The link: how a runner's manager and a worker process talk. This folder is its protocol, used by both sides.
//
// The manager starts the worker with a shard document (shard.hpp). The worker prints one line when it is ready
// (Ready). From then on the manager sends messages (message.hpp) and looks at the worker twice a second (look.hpp),
// over HTTP on loopback. Manager and worker may be of different versions for a while, because each is replaced at its
// own time: no name on the wire changes its meaning, a reader takes what it knows and passes over the rest (only the
// shard document and the elements of it are read strictly), and `kProtocol` grows when something is added that the
// other side may have to do without. 0 is a worker from before `kProtocol` existed: it has no route for the look.
// Pure functions; any thread.
#pragma once

#include "weir/base/json.hpp"

namespace weir::link {

inline constexpr int kProtocol = 1;

// A worker's first line on standard output.
struct Ready {
  std::string control;     // "http://127.0.0.1:9108": where it answers
  int pid = 0;
  int protocol = 0;
  std::optional<Secret> token = {};  // only for a person who started the worker by hand
};
template <class V>
void fields(V& v, Ready& r) {
  v.required("control", r.control);
  v.optional("pid", r.pid);
  v.optional("protocol", r.protocol);
  v.optional("token", r.token);
}

}  // namespace weir::link
