// HttpStreamPlane: the port StreamPlane (the control plane as an orchestrator asks it), over the HTTP API. Whose token
// it shows and which address it asks is in plane_talk.hpp.
//
// `follow` goes on after the last order that was heard. Where orders may be missing it ends, and the next call begins
// with those to come: an old order is never carried out late. It hands on the orders to this orchestrator, and those to
// nobody in particular. Loop thread only; it must outlive its running calls.
#pragma once

#include "weir/http_plane/plane_talk.hpp"
#include "weir/ports/stream_plane.hpp"

namespace weir::http_plane {

class HttpStreamPlane final : public StreamPlane {
 public:
  static Result<std::unique_ptr<HttpStreamPlane>> create(boost::asio::io_context& io, Clock& clock, Config config);

  // Another address or key, from the next question on.
  Status use(const std::string& url, Secret api_key);
  // A token with which this boot's stream workers publish.
  Async<LentToken> worker_token(BootId boot) { return talk_->worker_token(std::move(boot)); }

  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override { return talk_->apply(std::move(batch)); }
  Async<StreamRecord> record(SubjectId id) override;
  Async<std::vector<StreamRecord>> records() override;
  Async<Nothing> tell(StreamTold told) override;
  Async<Nothing> publish(event::Event event) override;
  boost::asio::awaitable<Status> follow(std::function<void(const StreamOrder&)> each) override;

 private:
  HttpStreamPlane(std::unique_ptr<PlaneTalk> talk, net::HttpClient events)
      : talk_(std::move(talk)), events_(std::move(events)) {}
  // Takes one frame of the feed; the error ends it.
  Status take(const net::StreamedEvent& frame, const std::function<void(const StreamOrder&)>& each);

  std::unique_ptr<PlaneTalk> talk_;
  net::HttpClient events_;  // what the feed or an event suffers must not cost the leases their connection
  std::string cursor_;      // of the last frame; "" before the first
};

}  // namespace weir::http_plane
