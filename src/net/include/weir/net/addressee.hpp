// Addressee: whose numbers a metrics page is asked for.
//
// Several runners share a host, and a port that one has left is soon used by another. A client may name the runner
// that it means in `?runner_id=`; another runner that answers there refuses, so that a dead runner does not look
// alive. A request that names none is answered by any runner. Any thread.
#pragma once

#include "weir/net/http.hpp"

namespace weir::net {

Status meant_for(const Request& request, std::string_view runner);

}  // namespace weir::net
