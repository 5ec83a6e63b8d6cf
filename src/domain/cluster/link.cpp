#include "weir/cluster/link.hpp"

#include <utility>

namespace weir::cluster {

namespace {

class Stepper {
 public:
  Stepper(Link link, Instant now, double draw, const LinkPolicy& policy)
      : link_(link), now_(now), draw_(draw), policy_(policy) {}

  void on(const Begun&) {
    if (link_.state != LinkState::closed) return;
    link_ = {};
    dial(LinkState::connecting);
  }
  void on(const Opened&) {
    if (link_.socket != Link::Socket::dialling) return;
    link_.socket = Link::Socket::open;
    link_.due = now_ + policy_.report_within;
    tell("worker:connected");
    actions_.emplace_back(AskState{});
  }
  void on(const Reported&) {
    if (link_.socket != Link::Socket::open) return;
    link_.due = now_ + policy_.report_within;
    if (link_.state == LinkState::online) return;
    link_.state = LinkState::online;
    link_.online_since = now_;
    tell("worker:online");
  }
  void on(const Broken& broken) {
    if (link_.socket == Link::Socket::none) return;
    if (broken.error) tell("worker:websocket_error", broken.reason);
    end(LinkState::reconnecting, broken.reason);
  }
  void on(const Late&) {
    if (now_ < link_.due || link_.state == LinkState::closed) return;
    if (link_.socket == Link::Socket::none) return dial(LinkState::reconnecting);
    actions_.emplace_back(HangUp{});
    if (link_.socket == Link::Socket::dialling) {
      tell("worker:websocket_error", "the worker did not answer the connection in time");
      return end(LinkState::reconnecting, "");
    }
    bool was_online = link_.state == LinkState::online;
    end(was_online ? LinkState::offline : LinkState::reconnecting, "the worker sent no state report in time");
  }
  void on(const Closed&) {
    if (link_.state == LinkState::closed) return;
    if (link_.socket != Link::Socket::none) actions_.emplace_back(HangUp{});
    end(LinkState::closed, "the connection is no longer wanted");
    link_.due = Instant::max();
  }

  LinkStep take() { return {link_, std::move(actions_)}; }

 private:
  void tell(std::string_view event, std::string reason = {}) { actions_.emplace_back(Tell{event, std::move(reason)}); }

  void dial(LinkState state) {
    link_.state = state;
    link_.socket = Link::Socket::dialling;
    link_.due = now_ + policy_.dial_within;
    tell("worker:connecting");
    actions_.emplace_back(Dial{});
  }

  void end(LinkState next, const std::string& reason) {
    bool was_online = link_.state == LinkState::online;
    if (was_online && now_ - link_.online_since >= policy_.steady_after) link_.failures = 0;
    if (was_online) tell("worker:offline", reason);
    if (link_.socket == Link::Socket::open) tell("worker:disconnected", reason);
    link_.state = next;
    link_.socket = Link::Socket::none;
    link_.due = now_ + policy_.pause.delay(link_.failures++, draw_);
  }

  Link link_;
  const Instant now_;
  const double draw_;
  const LinkPolicy& policy_;
  std::vector<LinkAction> actions_;
};

}  // namespace

LinkStep step(Link link, const LinkEvent& event, Instant now, double draw, const LinkPolicy& policy) {
  Stepper stepper(link, now, draw, policy);
  std::visit([&stepper](const auto& each) { stepper.on(each); }, event);
  return stepper.take();
}

}  // namespace weir::cluster
