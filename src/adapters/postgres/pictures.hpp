// Statements for pictures that were asked for, on one session. Private to this folder; throws PgFailure. One thread.
#pragma once

#include "connection.hpp"

#include "weir/ports/pictures.hpp"

namespace weir::postgres {

Result<Nothing> put_picture(Connection& c, const CameraId& camera, const SnapshotPicture& picture);
Result<std::optional<SnapshotPicture>> find_picture(Connection& c, const CameraId& camera, const std::string& request);

}  // namespace weir::postgres
