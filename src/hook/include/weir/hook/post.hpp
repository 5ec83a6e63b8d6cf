// A post: the one HTTP request by which weir-hook tells the orchestrator what MediaMTX saw, and its answer's status.
//
// MediaMTX hands over text that a publisher chose (the path, the query). Any bytes of it become valid JSON: what is no
// UTF-8 is replaced by U+FFFD. Plain functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::hook {

// The parts of "http://host:port/prefix".
struct Address {
  std::string host, port;  // an IPv6 host stands here without its brackets
  std::string authority;   // "host:port" as the URL has it, for the Host header and messages
  std::string prefix = {};  // "" or "/path", without a slash at its end
};
// None where the URL is of another scheme, has no host or no sensible port, or contains a user, a query or a space.
std::optional<Address> split_url(std::string_view url);

// What MediaMTX says in a hook's environment.
struct Event {
  std::string_view path, query = {}, source_type = {}, source_id = {};
};

// A JSON string with its quotation marks.
std::string json_string(std::string_view bytes);
// `what` is "ready" or "not-ready". Without a token there is no Authorization header.
std::string request_text(const Address& to, std::string_view what, const Event& event, std::string_view token);
// Whether it can stand in a header: visible ASCII characters only, and at least one.
bool is_token(std::string_view text);
// The status in an answer's first line; 0 where that line is not complete or no HTTP.
int status_of(std::string_view answer);

}  // namespace weir::hook
