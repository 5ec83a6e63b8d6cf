#include "pictures.hpp"

namespace weir::postgres {

Result<Nothing> put_picture(Connection& c, const CameraId& camera, const SnapshotPicture& picture) {
  // A control plane that asked at the same moment may not have read its own picture yet.
  c.query(
      "DELETE FROM pictures WHERE put_at < now() - interval '1 minute'"
      " OR (camera_uuid = $1::text AND put_at < now() - interval '2 seconds')",
      Params() << camera);
  c.query(
      "INSERT INTO pictures VALUES ($1::text, $2::text, $3::text, $4::text, now()) ON CONFLICT DO NOTHING",
      Params() << camera << picture.request << picture.jpeg << picture.captured_at);
  return ok();
}

Result<std::optional<SnapshotPicture>> find_picture(Connection& c, const CameraId& camera, const std::string& request) {
  Rows rows = c.query("SELECT jpeg, captured_at FROM pictures WHERE camera_uuid = $1::text AND request = $2::text",
                      Params() << camera << request);
  if (rows.size() == 0) return std::optional<SnapshotPicture>();
  return std::optional(SnapshotPicture{request, std::string(rows.view(0, 0)), std::string(rows.view(0, 1))});
}

}  // namespace weir::postgres
