#include "response_head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace weir::net {

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

bool has_body(int status) { return status != 204 && status != 304; }

namespace {
std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return "Status";
  }
}

// A value cannot end its line, whatever a handler puts into it.
void append_value(std::string& to, std::string_view value) {
  for (char c : value)
    if (c != '\r' && c != '\n' && c != '\0') to += c;
}

bool header_name(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kMarks.find(c) != std::string_view::npos;
  });
}

// Headers that say how the message is framed, which is decided here only.
bool framing(std::string_view name) {
  return same_ignoring_case(name, "content-length") || same_ignoring_case(name, "transfer-encoding") ||
         same_ignoring_case(name, "connection") || same_ignoring_case(name, "x-request-id");
}
}  // namespace

std::optional<std::uint64_t> length_of(const Response& response) {
  if (response.stream) return std::nullopt;
  return response.source.next ? response.source.bytes : response.body.size();
}

void write_head(std::string& out, const Response& response, const HeadFacts& facts) {
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\ndate: {}\r\nx-request-id: {}\r\n", response.status,
                 reason_phrase(response.status), facts.date, facts.request_id);
  if (has_body(response.status)) {
    out += "content-type: ";
    append_value(out, response.content_type);
    out += "\r\n";
    if (auto length = length_of(response))
      fmt::format_to(std::back_inserter(out), "content-length: {}\r\n", *length);
    else if (facts.http11)
      out += "transfer-encoding: chunked\r\n";
  }
  if (!facts.keep_alive)
    out += "connection: close\r\n";
  else if (!facts.http11)
    out += "connection: keep-alive\r\n";
  for (const auto& [name, value] : response.headers) {
    if (!header_name(name) || framing(name)) continue;
    out += name;
    out += ": ";
    append_value(out, value);
    out += "\r\n";
  }
  out += "\r\n";
}

}  // namespace weir::net
