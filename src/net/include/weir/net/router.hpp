// Router: which handler answers a request.
//
// A pattern is "/v1/cameras/{camera_uuid}"; each {name} matches one non-empty segment (percent-decoded, so an id may
// hold an escaped slash). "/x" also answers "/api/x", and a trailing slash is optional, for every route.
// A word beats a {name}: DELETE of "/v1/leases/events" is never asked of "/v1/leases/{id}".
// An unknown path is 404, a known path with another method 405 with `Allow`; HEAD is answered by GET's handler
// without its body. Constant after set-up; then shared freely.
#pragma once

#include "weir/net/http.hpp"

namespace weir::net {

// Declares that a route's handler reads the body itself (`Request::streamed`), which may then be larger than the memory
// that anybody wants to give for it.
struct StreamedBody {
  std::uint64_t bytes_max = 0;
  std::vector<std::string> content_types = {"application/octet-stream"};  // others are refused
};

class Router {
 public:
  void add(Method method, std::string_view pattern, Handler handler, std::optional<StreamedBody> body = {});
  // `raw_path` is not decoded: splitting happens before decoding. Fills request.params and returns the handler and its
  // pattern (the label for metrics), or the error to answer with.
  struct Match {
    const Handler* handler;
    const std::string* pattern;
    const StreamedBody* body;  // null where the body is read before the handler is called
  };
  Result<Match> find(Method method, std::string_view raw_path, Request& request) const;
  // The methods that would be allowed on this path, for 405 and OPTIONS.
  std::string allowed(std::string_view raw_path) const;
  struct Listed { Method method; std::string pattern; };
  std::vector<Listed> list() const;
  bool has_streamed() const { return has_streamed_; }

 private:
  struct Route {
    Method method;
    std::string pattern;
    std::vector<std::string> segments;
    Handler handler;
    std::optional<StreamedBody> body;
  };
  std::vector<Route> routes_;
  bool has_streamed_ = false;
};

}  // namespace weir::net
