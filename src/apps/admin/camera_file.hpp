// Camera files: many cameras at once, as CSV or as a YAML list, for `weir camera import` and `weir up --cameras`.
//
// CSV has the columns camera_uuid, tenant_id, site_id, rtsp_url and, if wanted, name; a first line that names them may
// put them in another order. A column of another name fails the file: everything else a camera has goes by YAML. YAML is
// a list (or `cameras:` with a list) of what the API takes. A line that cannot be read carries its problem instead of a
// camera; the others stand. Plain functions; any thread.
#pragma once

#include "weir/base/json.hpp"

#include <string>
#include <vector>

namespace weir::apps {

struct CameraLine {
  int line = 0;
  json::object camera = {};
  std::string problem = {};
};

// The name's ending tells the form: .yaml, .yml and .json are YAML, everything else is CSV. Fails where nothing can
// be read at all.
Result<std::vector<CameraLine>> read_camera_file(std::string_view text, std::string_view file_name);

// The same cameras as a YAML list that `read_camera_file` reads back unchanged: a camera's fields a line each, its zones
// a line each. An address whose credentials were left out says so in a comment.
std::string write_camera_file(const std::vector<json::object>& cameras);

// Whether a camera's address stands without its credentials or query, as a person is shown it: "rtsp://***@host/1".
bool is_redacted(std::string_view url);

struct CsvRow {
  int line = 0;
  std::vector<std::string> cells = {};
  std::string problem = {};
};
// Commas, double quotes (doubled inside), line ends of any kind also inside quotes; blank lines are left out.
std::vector<CsvRow> parse_csv(std::string_view text);

}  // namespace weir::apps
