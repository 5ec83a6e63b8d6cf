// A self-signed certificate, made anew at each start, as recorders with rtsps have them. Plain function; any
// thread.
#pragma once

#include "weir/base/result.hpp"

namespace weir::camsim {

// Private key and certificate, in PEM.
Result<std::string> make_certificate(const std::string& common_name);

}  // namespace weir::camsim
