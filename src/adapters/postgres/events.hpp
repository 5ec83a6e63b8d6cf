// Event log statements on one session. Private to this folder; throws PgFailure.
#pragma once

#include "connection.hpp"

#include "weir/ports/event_log.hpp"

namespace weir::postgres {

Result<std::vector<Confirmation>> append_events(Connection& c, const std::vector<event::Event>& events,
                                                const EventSpeaker& speaker);
Result<Nothing> announce(Connection& c, const std::vector<event::Event>& announcements);
Result<EventPage> read_events(Connection& c, std::int64_t after, int limit);
Result<EventPlace> newest_event(Connection& c);
std::int64_t trim_events(Connection& c, const EventRetention& retention, int most);

}  // namespace weir::postgres
