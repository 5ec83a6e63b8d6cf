#include "camera_file.hpp"

#include "common/yaml.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <span>

namespace weir::apps {

namespace {

constexpr std::string_view kColumns[] = {"camera_uuid", "tenant_id", "site_id", "rtsp_url", "name"};

constexpr size_t kNeeded = 4;  // the first so many of them

bool is_column(std::string_view name) { return std::ranges::find(kColumns, name) != std::end(kColumns); }

// One sentence for the whole file: each of its lines would say the same.
Error not_a_column(std::string_view file_name, const std::string& column) {
  return {Errc::invalid, "bad_camera_file",
          fmt::format("{0}: CSV has the columns {1} and no others; \"{2}\" goes by YAML, in a file cameras.yaml with a line "
                      "for each camera: - {{camera_uuid: cam-1, tenant_id: t-01, site_id: site-A, rtsp_url: \"rtsp://…\", "
                      "{2}: …}} (`weir camera export cameras.yaml` writes such a file of the cameras there are)",
                      file_name, fmt::join(kColumns, ", "), column)};
}

Result<std::vector<CameraLine>> cameras_of_csv(std::string_view text, std::string_view file_name) {
  std::vector<CsvRow> rows = parse_csv(text);
  std::vector<std::string> columns(std::begin(kColumns), std::end(kColumns));
  size_t first = 0;
  if (!rows.empty() && std::ranges::find(rows[0].cells, "camera_uuid") != rows[0].cells.end()) {
    columns = rows[0].cells;
    first = 1;
    if (auto other = std::ranges::find_if_not(columns, is_column); other != columns.end())
      return not_a_column(file_name, *other);
    for (std::string_view needed : std::span(kColumns).first(kNeeded))
      if (std::ranges::find(columns, needed) == columns.end())
        return Error{Errc::invalid, "bad_camera_file",
                     fmt::format("{}: its first line names no column {}; a camera needs {}", file_name, needed,
                                 fmt::join(std::span(kColumns).first(kNeeded), ", "))};
  }
  std::vector<CameraLine> cameras;
  for (size_t i = first; i < rows.size(); ++i) {
    CameraLine& line = cameras.emplace_back(CameraLine{.line = rows[i].line, .problem = rows[i].problem});
    if (!line.problem.empty()) continue;
    if (rows[i].cells.size() > columns.size() || rows[i].cells.size() < kNeeded) {
      line.problem = fmt::format("must have {} to {} columns, has {}", kNeeded, columns.size(), rows[i].cells.size());
      continue;
    }
    for (size_t c = 0; c < rows[i].cells.size(); ++c)
      if (!rows[i].cells[c].empty()) line.camera[columns[c]] = rows[i].cells[c];
  }
  return cameras;
}

Result<std::vector<CameraLine>> cameras_of_yaml(const std::string& text, std::string_view file_name) {
  auto wrong = [](std::string message) { return Error{Errc::invalid, "bad_camera_file", std::move(message)}; };
  try {
    YAML::Node root = YAML::Load(text);
    if (root.IsMap() && root["cameras"]) root = root["cameras"];
    if (root.IsNull()) return std::vector<CameraLine>();
    if (!root.IsSequence()) return wrong(fmt::format("{} must be a list of cameras", file_name));
    std::vector<CameraLine> cameras;
    for (const auto& each : root) {
      CameraLine& line = cameras.emplace_back(CameraLine{.line = each.Mark().line + 1});
      // An id such as 17 is a text all the same.
      if (each.IsMap()) line.camera = to_json(each, is_column).as_object();
      else line.problem = "must be a camera with camera_uuid, tenant_id, site_id and rtsp_url";
    }
    return cameras;
  } catch (const YAML::Exception& failed) {
    return wrong(fmt::format("{}:{} is not valid YAML: {}", file_name, failed.mark.line + 1, failed.msg));
  }
}

// A value as JSON, which YAML reads too, but without quotes around names. Texts are quoted, so that none is read as a
// number or a truth value.
std::string flow(const json::value& v) {
  std::vector<std::string> parts;
  if (v.is_object()) {
    for (const auto& member : v.get_object())
      parts.push_back(fmt::format("{}: {}", std::string_view(member.key()), flow(member.value())));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  if (v.is_array()) {
    for (const json::value& each : v.get_array()) parts.push_back(flow(each));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  return json::to_text(v);
}

bool holds_redacted(const json::value& v) {
  if (v.is_string()) return is_redacted(v.get_string());
  return v.is_object() && std::ranges::any_of(v.get_object(), [](const auto& member) { return holds_redacted(member.value()); });
}

std::string field_text(std::string_view name, const json::value& v) {
  if (name != "zones" || !v.is_array() || v.get_array().empty()) {
    bool url = name.ends_with("_url") || name == "snapshot";
    return fmt::format("{}: {}{}\n", name, flow(v), url && holds_redacted(v) ? "  # without its credentials" : "");
  }
  std::string out = "zones:\n";
  for (const json::value& zone : v.get_array()) out += fmt::format("      - {}\n", flow(zone));
  return out;
}

}  // namespace

bool is_redacted(std::string_view url) { return url.find("***") != std::string_view::npos; }

std::string write_camera_file(const std::vector<json::object>& cameras) {
  std::string out = "# Cameras of a Weir control plane, for `weir camera import`.\n";
  out += cameras.empty() ? "cameras: []\n" : "cameras:\n";
  for (const json::object& camera : cameras) {
    std::string_view before = "  - ";
    for (const auto& member : camera) {
      out += before;
      out += field_text(member.key(), member.value());
      before = "    ";
    }
  }
  return out;
}

std::vector<CsvRow> parse_csv(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<CsvRow> rows;
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    CsvRow row{.line = line};
    bool more = true;
    while (more) {
      std::string& cell = row.cells.emplace_back();
      if (at < text.size() && text[at] == '"') {
        bool closed = false;
        for (++at; at < text.size() && !closed; ++at) {
          if (text[at] == '\n') ++line;
          if (text[at] != '"') cell += text[at];
          else if (at + 1 < text.size() && text[at + 1] == '"') cell += text[at++];
          else closed = true;
        }
        if (!closed) row.problem = "a quote is not closed";
      }
      while (at < text.size() && text[at] != ',' && text[at] != '\n' && text[at] != '\r') cell += text[at++];
      more = at < text.size() && text[at] == ',';
      if (more) ++at;
    }
    if (at < text.size() && text[at] == '\r') ++at;
    if (at < text.size() && text[at] == '\n') ++at;
    ++line;
    bool blank = row.cells.size() == 1 && row.cells[0].find_first_not_of(" \t") == std::string::npos;
    if (!blank) rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<CameraLine>> read_camera_file(std::string_view text, std::string_view file_name) {
  if (!valid_utf8(text))
    return Error{Errc::invalid, "bad_camera_file", fmt::format("{} is not valid UTF-8", file_name)};
  for (std::string_view ending : {".yaml", ".yml", ".json"})
    if (file_name.ends_with(ending)) return cameras_of_yaml(std::string(text), file_name);
  return cameras_of_csv(text, file_name);
}

}  // namespace weir::apps
