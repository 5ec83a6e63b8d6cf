// Addressee: for whom a request is meant.
//
// A browser that was lured to a name that resolves to loopback sends that name as Host: what answers on loopback
// answers only under a name of loopback's own.
//
// Several runners share a host, and a port that one has left is soon used by another. A client may name the runner
// that it means in `?runner_id=`; another runner that answers there refuses, so that a dead runner does not look
// alive. A request that names none is answered by any runner. Any thread.
#pragma once

#include "weir/net/http.hpp"

namespace weir::net {

// Of a Host header, with or without a port.
bool names_loopback(std::string_view host);
Status meant_for(const Request& request, std::string_view runner);

}  // namespace weir::net
