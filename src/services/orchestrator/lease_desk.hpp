// LeaseDesk: asks the plane about the leases of all streams, many questions in one batch.
//
// Each stream has a holder (lease::step) that says what to ask and what an answer means. The desk gathers the questions
// of one turn of the loop by operation, sends them, and feeds the answers back. It keeps the holders' time. What a
// holder learns reaches the stream by `heard`. Loop thread only.
#pragma once

#include "weir/base/agenda.hpp"
#include "weir/base/alarm.hpp"
#include "weir/base/clock.hpp"
#include "weir/lease/holder.hpp"
#include "weir/ports/stream_plane.hpp"

#include <functional>
#include <map>

namespace weir::orchestrator {

// What became of a stream's lease.
struct Granted {
  lease::Version version;
  Instant valid_until;
};
struct TakenByAnother {
  std::string why;
};
struct Lost {};
struct Silent {};
struct Released {};
using LeaseNews = std::variant<Granted, TakenByAnother, Lost, Silent, Released>;

class LeaseDesk {
 public:
  using Heard = std::function<void(const SubjectId& id, const LeaseNews& news)>;
  LeaseDesk(boost::asio::io_context& io, StreamPlane& plane, Clock& clock, lease::Owner owner, lease::Home home,
            lease::HolderPolicy policy, Heard heard);

  void want(const SubjectId& id) { feed(id, lease::Wanted{}); }
  // Answered by Released, also where nothing was held.
  void release(const SubjectId& id);
  void rotate(const SubjectId& id) { feed(id, lease::FreshVersionNeeded{}); }
  // The right that the stream has now; zero where it has none.
  Instant valid_until(const SubjectId& id) const;
  lease::Version version(const SubjectId& id) const;
  // The stream is known no more: what is remembered of its lease may go, if nothing of it is held.
  void forget(const SubjectId& id);

  // Keeps time until it is cancelled or the desk is closed.
  boost::asio::awaitable<void> run();
  void close();

 private:
  void feed(const SubjectId& id, const lease::HolderEvent& event);
  void perform(const SubjectId& id, const lease::HolderAction& action);
  void tell_released(const SubjectId& id);
  void send_soon(lease::Question question);
  boost::asio::awaitable<void> send(lease::Operation operation, std::vector<lease::Question> questions);
  void tell_refusal(const SubjectId& id, const lease::Question& question, const lease::Answer& answer);

  boost::asio::io_context& io_;
  StreamPlane& plane_;
  Clock& clock_;
  const lease::Owner owner_;
  // Stands in the place of the boot in idempotency keys, and is new in each process. An orchestrator that continues its
  // predecessor's boot must not repeat a key: the store would answer with a version that the predecessor has used.
  const BootId keys_;
  const lease::Home home_;
  const lease::HolderPolicy policy_;
  const Heard heard_;
  std::map<SubjectId, lease::HolderState> holders_;
  // The highest number of a question by a holder that was forgotten: later holders go on from it, so that a late answer
  // to an earlier holder's question never passes for one to a later holder's.
  std::uint64_t questions_ = 0;
  Agenda<SubjectId> agenda_;  // when a holder hears that time has passed
  std::map<lease::Operation, std::vector<lease::Question>> gathered_;
  Alarm changed_;
  bool closed_ = false;
};

}  // namespace weir::orchestrator
