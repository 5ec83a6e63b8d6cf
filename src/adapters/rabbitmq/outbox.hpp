// Outbox: what is to be published, in its order, and what of it the broker has not confirmed yet.
//
// The broker counts what is published on a channel from 1 on; its answers name a number, or all up to it, in any order.
// After a refusal everything that is unconfirmed is written again, in its order, so that no event overtakes another
// one; answers to the earlier writing are ignored. A publication is answered once: `accepted` for all its events, or an
// error. One that fails for the broker's sake takes all others with it, because they may hold later events of the same
// camera. Decides only; no library, no clock. One thread.
#pragma once

#include "weir/base/time.hpp"
#include "weir/ports/event_bus.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>

namespace weir::rabbitmq {

// One call of `publish`.
struct Publication {
  std::vector<event::Event> events;
  std::optional<Instant> deadline = {};  // the earliest of its events
  std::function<void(Result<std::vector<Confirmation>>)> answer;
  // Guarded by the sender's gate.
  bool begun = false;     // bytes of it may be under way
  bool given_up = false;  // nobody waits for it; not a byte more is written
  // The outbox's.
  size_t left = 0;  // events without a confirmation
  int refusals = 0;
  bool over = false;  // answered, or given up
};
using PublicationPtr = std::shared_ptr<Publication>;

class Outbox {
 public:
  struct Item {
    PublicationPtr publication;
    size_t index = 0;
    const event::Event& event() const { return publication->events[index]; }
  };

  void add(PublicationPtr publication);
  // The event to write next; null: none waits.
  const Item* next();
  // That event was written.
  void written();
  void confirmed(std::uint64_t number, bool all_up_to);
  // Everything unconfirmed waits again. The most refusals that one of its publications has met so far; 0 where the
  // answer is to an earlier writing.
  int refused(std::uint64_t number, bool all_up_to);
  void fail(Publication& publication, const Error& why);
  void fail_all(const Error& why);
  // The connection is new: the broker counts from 1 again.
  void begin_again();

  size_t unconfirmed() const { return unconfirmed_.size(); }
  bool empty() const { return waiting_.empty() && unconfirmed_.empty(); }

 private:
  void confirm(const Item& item);

  std::deque<Item> waiting_;
  std::map<std::uint64_t, Item> unconfirmed_;  // by the broker's number
  std::uint64_t numbers_ = 0;                  // the last one that was used
};

}  // namespace weir::rabbitmq
