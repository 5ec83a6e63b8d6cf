// Addressee: whose numbers a metrics page is asked for.
//
// Several runners share a host, and a port that one has left is soon somebody else's. Whoever asks for a page may name
// the runner that he means in `?runner_id=`; another one that answers there refuses, so that nobody who is dead looks
// alive. A request that names nobody means whoever answers. Any thread.
#pragma once

#include "weir/net/http.hpp"

namespace weir::net {

Status meant_for(const Request& request, std::string_view runner);

}  // namespace weir::net
