// RequestLine: what a process that is not the master asks the master for, over Redis.
//
// Each request has a number; the answer comes on this process's own channel, which is listened to only while a request
// is open. A request that nobody answers in time ends with the reason `no_master`. A bounded number is open at a time.
// Loop thread only.
#pragma once

#include "weir/base/alarm.hpp"
#include "weir/cluster/announcement.hpp"
#include "weir/ports/coordination.hpp"

namespace weir::cluster {

class RequestLine {
 public:
  RequestLine(boost::asio::io_context& io, Coordination& on, Clock& clock, EpochJudge& judge, std::string process)
      : io_(io), on_(on), clock_(clock), judge_(judge), process_(std::move(process)) {}

  // `what` is a SessionSet, a PatchAnswered or a CameraResubscribed; who asks, and its number, are put in here.
  Async<Nothing> ask(Saying what);

 private:
  struct Open {
    explicit Open(boost::asio::io_context& io, Clock& clock) : alarm(io, clock) {}
    Alarm alarm;
    std::optional<Status> answer = {};
  };
  void hear();
  void heard(const Heard& heard);

  boost::asio::io_context& io_;
  Coordination& on_;
  Clock& clock_;
  EpochJudge& judge_;
  const std::string process_;
  std::map<std::int64_t, std::shared_ptr<Open>> open_;
  std::int64_t newest_ = 0;
  std::unique_ptr<Listening> listening_;
  bool begun_ = false;
};

}  // namespace weir::cluster
