// HostList: the hosts from which something may be fetched, as an operator lists them.
//
// "plane.example:8080, models.example": with a port that port alone, without one all of the host's. Names are compared
// as they are written, in any case, and not resolved: two names of one machine are two hosts. Plain values and pure
// functions; any thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"

#include <string>
#include <vector>

namespace weir::detector {

// Where a URL with http:// or https:// leads.
struct WebPlace {
  std::string base;         // "https://host:port"
  std::string host, port;   // of "http://[::1]/x" these are "[::1]" and "80"
  std::string target = {};  // path and query
  std::string path = {};    // without the query, which may hold a signature
  bool credentials = false; // the URL has a user or a password
};
// The error repeats nothing of the URL.
Result<WebPlace> web_place(const Secret& url);

class HostList {
 public:
  static Result<HostList> parse(std::string_view text);
  // Those of a control plane's addresses.
  static Result<HostList> of_urls(std::string_view urls);
  static HostList loopback();

  bool empty() const { return hosts_.empty(); }
  bool has(const WebPlace& place) const;
  std::string text() const;

 private:
  struct Entry {
    std::string host, port;  // "": every port
  };
  std::vector<Entry> hosts_;
};

}  // namespace weir::detector
