// The bodies of the event routes: from JSON to events that may be appended, and from what was stored to JSON.
//
// What an item says and what its payload says must agree, and the routing key must be of the item's topic; who may
// publish what is decided here too. Whether the key is the camera's or the stream's own is checked by `fits_place`,
// because only the store knows where it stands. Pure functions; no state.
#pragma once

#include "access.hpp"

#include "weir/base/json.hpp"
#include "weir/event/routing.hpp"
#include "weir/ports/event_log.hpp"

#include <span>
#include <string>

namespace weir::control_plane {

inline constexpr size_t kPayloadBytesMax = 256 << 10;

Result<std::vector<event::Event>> read_events(const json::value& body, const Caller& caller);
// `index` is the event's place in the batch, for the message.
Status fits_place(const event::Event& event, const event::Place& place, size_t index);
// {"items":[{"event_id","result"}]}
std::string write_confirmations(std::span<const std::string> event_ids, std::span<const Confirmation> answers);

// A place in the log as clients hold it: "3-8192".
std::string cursor_text(EventPlace place);
std::optional<EventPlace> parse_cursor(std::string_view text);

// {"routing_key","topic","payload"}, on one line.
std::string write_event_data(const StoredEvent& event);
// The same with its cursor and time, for pages.
std::string write_event_item(const StoredEvent& event, std::int64_t epoch);

}  // namespace weir::control_plane
