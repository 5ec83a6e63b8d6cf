// Front: what a product gets of the cluster at any of its processes, and asks of it. It is the same at the master and at
// every other process; the routes and WebSockets for products stand before it.
//
// Whoever listens is told everything that happens in the cluster, as Notices; what it does not want, it leaves out
// itself. A detection carries the id under which it is kept: who was away names the last one it got, and is first told
// what followed, or that more followed than is kept. Each detection is told at least once: after a takeover, or when
// Redis comes back, one may be told twice, under one id or two. While Redis is away only the master's own process has
// detections to tell, and they carry no id. Loop thread only.
#pragma once

#include "weir/cluster/worker_protocol.hpp"
#include "weir/ports/async.hpp"

#include <functional>
#include <memory>
#include <variant>

namespace weir::cluster {

struct DetectionSeen {
  std::string stream_id = {};  // "" while Redis is away
  std::string worker = {};     // its address without credentials
  ImageDetection detection;
};
// Told once to a listener that named no id: it is told what follows this one, and may name it when it comes again.
struct ListeningFrom {
  std::string stream_id;
};
// What followed the id that a listener named is not kept any more: some detections are lost to it.
struct DetectionsLost {};
// Something happened to a worker or to the cluster's processes: "worker:online" {url}, "master-acquired" {processId}, …
struct ClusterEvent {
  std::string type;
  json::object payload = {};
};
// A worker wants a session changed. The first answer within five seconds is what the worker is told.
struct SessionPatched {
  std::int64_t session = 0;
  json::value data = nullptr;
};
using Notice = std::variant<DetectionSeen, ListeningFrom, DetectionsLost, ClusterEvent, SessionPatched>;

// Ends the listening when it is destroyed; nothing is told after that.
class Hearing {
 public:
  virtual ~Hearing() = default;
};

class Front {
 public:
  virtual ~Front() = default;

  // `after`: the stream id of the last detection that this listener got; "" tells what comes from now on. While
  // `has_room` says no, what the listener has missed is not told; what comes is.
  virtual std::unique_ptr<Hearing> listen(std::string after, std::function<void(const Notice&)> each,
                                          std::function<bool()> has_room) = 0;

  // What this process knows of the whole cluster: processId, isMaster, slaveId, totalWorkers, totalSlaves, workers,
  // slaves, assignments, and Weir's own fields beside them. Where that cannot be read, what is certain, and empty lists.
  virtual Async<json::object> state() = 0;
  // The same as JSON text, for whoever sends it on: a large cluster's state is some megabytes.
  virtual Async<std::string> state_text() {
    CO_TRY(shown, co_await state());
    co_return json::to_text(std::move(shown));
  }
  // The rows have changed, or somebody wants the load looked at anew: the master makes everything new from the rows.
  virtual Async<Nothing> regenerate(std::string reason) = 0;
  // Tells every worker which session a display has; nothing: none any more.
  virtual Async<Nothing> set_session(std::string display, std::optional<std::int64_t> session) = 0;
  // The answer to a SessionPatched; an error where it comes too late or another one was first.
  virtual Async<Nothing> answer_patch(PatchSessionResult result) = 0;
  // Gives every subscription of this camera to its worker anew, with a fresh address of its model; `no_subscription`
  // where there is none.
  virtual Async<Nothing> resubscribe(std::string camera) = 0;
  // The addresses of the workers that have a subscription of this camera, with credentials as they were configured.
  virtual Async<std::vector<std::string>> workers_of(std::string camera) = 0;
};

}  // namespace weir::cluster
