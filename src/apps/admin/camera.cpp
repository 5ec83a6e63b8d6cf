#include "admin.hpp"
#include "budget_advice.hpp"
#include "camera_import.hpp"
#include "camera_keys.hpp"
#include "common/files.hpp"
#include "common/print.hpp"
#include "warnings.hpp"

#include "weir/camera/config.hpp"
#include "weir/posix/child_process.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace weir::apps {

int done(const Arguments& arguments, const json::value& answer, std::string_view sentence) {
  warn_of(answer);
  if (arguments.has("json")) print_json(answer);
  else print_line(harmless(sentence));
  return 0;
}

namespace {

using net::Method;

constexpr std::pair<const char*, const char*> kFields[] = {
    {"id", "camera_uuid"}, {"tenant", "tenant_id"}, {"site", "site_id"}, {"name", "name"}};

// An answer for a screen: what an administrator's token sees unredacted must not stay in a terminal's history.
json::value without_credentials(const json::value& camera) {
  json::value shown = camera;
  if (!shown.is_object()) return shown;
  auto redact = [](json::object& object, std::string_view name) {
    if (json::value* url = object.if_contains(name); url != nullptr && url->is_string())
      *url = redact_url(std::string_view(url->get_string()));
  };
  redact(shown.get_object(), "rtsp_url");
  redact(shown.get_object(), "substream_url");
  if (json::value* snapshot = shown.get_object().if_contains("snapshot"); snapshot != nullptr && snapshot->is_object())
    redact(snapshot->get_object(), "url");
  return shown;
}

void note_shown_password(std::string_view url) {
  if (redact_url(url) != url)
    complain("note: other users of this machine can see a command's arguments; --url-file keeps a password private");
}

Result<json::object> body_of(const Arguments& arguments) {
  json::object body;
  if (arguments.has("json-file")) {
    TRY(text, read_file(arguments.text("json-file"), 1 << 20));
    TRY(parsed, json::parse_text(text));
    if (!parsed.is_object())
      return Error{Errc::invalid, "bad_camera",
                   fmt::format("{} must hold one JSON object", arguments.text("json-file"))};
    body = parsed.get_object();
  }
  for (auto [option, field] : kFields)
    if (arguments.has(option)) body[field] = arguments.text(option);
  TRY(max_fps, arguments.number("max-fps"));
  if (max_fps) body["max_fps"] = *max_fps;
  if (arguments.has("url-file")) {
    TRY(text, read_file(arguments.text("url-file"), 64 << 10));
    body["rtsp_url"] = trimmed(text);
  } else if (arguments.has("<camera_url>")) {
    body["rtsp_url"] = arguments.text("<camera_url>");
  }
  return body;
}

void warn_of_budgets(Api& api, const std::set<std::string>& sites) {
  for (const std::string& warning : budget_warnings(api, sites)) warn(warning);
}

Result<int> camera_add(const Arguments& arguments) {
  if (arguments.has("url-file") && arguments.has("<camera_url>"))
    return usage_error("give the camera's URL once, as an argument or with --url-file; see weir camera add --help");
  TRY(body, body_of(arguments));
  for (auto [option, field] : kFields)
    if (!body.contains(field) && std::string_view(option) != "name")
      return usage_error(fmt::format("--{} is required; see weir camera add --help", option));
  if (!body.contains("rtsp_url") && !body.contains("snapshot"))
    return usage_error("the camera's URL is required, as an argument or with --url-file; see weir camera add --help");
  note_shown_password(arguments.text("<camera_url>"));
  TRY(api, Api::connect(arguments));
  TRY(answer, add_camera(api, body, arguments.has("create")));
  warn_of_budgets(api, {cell(answer, "site_id")});
  return done(arguments, without_credentials(answer), fmt::format("added camera {}", cell(answer, "camera_uuid")));
}

Result<int> camera_list(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  std::string target = "/v1/cameras";
  add_query(target, "tenant_id", arguments.text("tenant"));
  add_query(target, "site_id", arguments.text("site"));
  if (arguments.has("enabled")) add_query(target, "enabled", "true");
  TRY(found, api.list(target));
  json::array items;
  for (const auto& item : found) items.push_back(without_credentials(item));
  if (arguments.has("json")) return done(arguments, json::object{{"items", items}}, "");
  if (items.empty() && (arguments.has("tenant") || arguments.has("site") || arguments.has("enabled")))
    return done(arguments, {}, "no camera matches; all there are: weir camera list");
  if (items.empty())
    return done(arguments, {},
                "no cameras yet; add one with: weir camera add --tenant t-01 --site site-A --id cam-1 --url-file FILE");
  Table table({"CAMERA", "TENANT", "SITE", "ENABLED", "URL", "UPDATED"});
  for (const auto& item : items)
    table.add({cell(item, "camera_uuid"), cell(item, "tenant_id"), cell(item, "site_id"), cell(item, "enabled"),
               cell(item, "rtsp_url"), cell(item, "updated_at")});
  print(table.text());
  return 0;
}

Result<int> camera_show(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(answer, api.get(route("/v1/cameras", arguments.text("<camera>"))));
  json::value shown = without_credentials(answer);
  if (arguments.has("json") || !shown.is_object()) return done(arguments, shown, "");
  warn_of(answer);
  shown.get_object().erase("warnings");
  print(field_lines(shown.get_object()));
  return 0;
}

Result<int> camera_set(const Arguments& arguments) {
  std::string id = arguments.text("<camera>");
  std::vector<std::string> words = arguments.list("<changes>");
  for (const std::string& word : words)
    if (word.find("://") != std::string::npos) note_shown_password(word.substr(word.find('=') + 1));
  if (arguments.has("url-file")) {
    TRY(text, read_file(arguments.text("url-file"), 64 << 10));
    words.push_back("rtsp_url=" + trimmed(text));
  }
  if (words.empty()) return usage_error("give what to change, as KEY=VALUE; see weir camera set --help");
  TRY(form, camera_changes({}, words));  // mistakes in the words are reported before the control plane is asked
  TRY(api, Api::connect(arguments));
  json::object present;
  if (needs_present(words)) {
    TRY(answer, api.get(route("/v1/cameras", id)));
    if (answer.is_object()) present = answer.get_object();
  }
  TRY(body, camera_changes(present, words));
  TRY(answer, api.send(Method::patch, route("/v1/cameras", id), body));
  return done(arguments, without_credentials(answer), fmt::format("changed camera {}", id));
}

// What a person could have written: without the control plane's own notes, and with credentials on request alone.
Result<json::object> exported(const json::value& answer, bool with_credentials) {
  json::object out = answer.is_object() ? answer.get_object() : json::object();
  for (const char* note : {"created_at", "updated_at", "config_version", "zone_version", "crashes", "warnings"}) out.stable_erase(note);
  // To a viewer the control plane shows the addresses redacted, and such a configuration cannot be read.
  auto config = camera::read_config(json::value(out));
  if (!config && with_credentials)
    return Error{Errc::forbidden, "credentials_hidden",
                 "--with-credentials needs an administrator's token: to this one the control plane shows no credentials"};
  if (config)
    out = camera::write_config(*config, with_credentials ? camera::Credentials::shown : camera::Credentials::redacted);
  return out;
}

Result<int> camera_export(const Arguments& arguments) {
  bool secret = arguments.has("with-credentials");
  TRY(api, Api::connect(arguments));
  std::string target = "/v1/cameras";
  add_query(target, "tenant_id", arguments.text("tenant"));
  add_query(target, "site_id", arguments.text("site"));
  TRY(found, api.list(target));
  std::vector<json::object> cameras;
  for (const json::value& each : found) {
    TRY(camera, exported(each, secret));
    cameras.push_back(std::move(camera));
  }
  if (arguments.has("json")) return done(arguments, json::object{{"items", json::array(cameras.begin(), cameras.end())}}, "");
  std::string text = write_camera_file(cameras), file = arguments.text("<file>");
  if (file.empty() || file == "-") {
    print(text);
    return 0;
  }
  TRY(written, write_file(file, text, secret ? 0600 : 0644));
  print_line(harmless(fmt::format("wrote {} camera{} to {}{}", cameras.size(), cameras.size() == 1 ? "" : "s", file,
                                  secret ? ", with their credentials" : "")));
  return 0;
}

Result<int> set_enabled(const Arguments& arguments, bool enabled) {
  TRY(api, Api::connect(arguments));
  std::string id = arguments.text("<camera>");
  TRY(answer, api.send(Method::patch, route("/v1/cameras", id), {{"enabled", enabled}}));
  return done(arguments, without_credentials(answer),
              fmt::format("{} camera {}", enabled ? "enabled" : "disabled", id));
}
Result<int> camera_enable(const Arguments& arguments) { return set_enabled(arguments, true); }
Result<int> camera_disable(const Arguments& arguments) { return set_enabled(arguments, false); }

Result<int> camera_remove(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  std::string id = arguments.text("<camera>");
  TRY(answer, api.send(Method::del, route("/v1/cameras", id)));
  return done(arguments, answer, fmt::format("removed camera {}", id));
}

Result<int> camera_import(const Arguments& arguments) {
  std::string file = arguments.text("<file>");
  TRY(text, read_file(file, 64 << 20));
  TRY(lines, read_camera_file(text, file));
  TRY(api, Api::connect(arguments));
  json::array items;
  std::signal(SIGPIPE, SIG_IGN);  // a reader who has seen enough, as `head`, ends the report and not the import
  ImportOptions options{.create = arguments.has("create"), .update = arguments.has("update")};
  auto counts = import_cameras(api, lines, options, [&](const Imported& one) {
    if (arguments.has("json")) {
      items.push_back(json::object{
          {"line", one.line}, {"camera_uuid", one.camera}, {"result", one.result}, {"message", one.message},
          {"warnings", one.warnings}});
    } else if (one.result == "failed") {
      std::string_view who = one.camera.empty() ? std::string_view("camera") : one.camera;
      complain(fmt::format("{}:{}: {} failed: {}", file, one.line, who, one.message));
    } else {
      print_line(harmless(fmt::format("{}:{}: {} {}", file, one.line, one.result, one.camera)));
      for (const std::string& message : messages_of(one.warnings))
        warn(fmt::format("{}:{}: {}: {}", file, one.line, one.camera, message));
    }
    return true;
  });
  if (arguments.has("json"))
    print_json(json::object{{"items", items},
                            {"added", counts.added},
                            {"updated", counts.updated},
                            {"failed", counts.failed},
                            {"not_tried", counts.not_tried}});
  else print_line(counts_text(counts));
  warn_of_budgets(api, sites_in(lines));
  return counts.failed == 0 ? 0 : 1;
}

Result<int> camera_snapshot(const Arguments& arguments) {
  std::string id = arguments.text("<camera>"), file = arguments.text("<file>");
  if (file.empty()) file = "-";
  if (file == "-" && ::isatty(STDOUT_FILENO) != 0)
    return usage_error("a JPEG is not for a terminal: name a file, as in `weir camera snapshot CAMERA now.jpg`");
  TRY(api, Api::connect(arguments));
  TRY(answer, api.raw(Method::get, route("/v1/cameras", id, "/snapshot.jpg")));
  if (answer.status >= 400) return net::response_error(answer);
  if (file == "-") {
    print(answer.body);
    return 0;
  }
  TRY(written, write_file(file, answer.body, 0644));
  std::string when = answer.headers["x-captured-at"];
  json::object said{{"camera_uuid", id}, {"file", file}, {"bytes", answer.body.size()}, {"captured_at", when}};
  return done(arguments, said, fmt::format("wrote {}: camera {} at {}", file, id, when));
}

// The helper that links the media libraries does the looking. It reads the URL from its standard input: a password does
// not stand among its arguments, which everybody on this machine can read.
Result<int> camera_test(const Arguments& arguments) {
  std::string helper = posix::helper_path("worker");
  std::vector<std::string> words{helper, "probe", "-"};
  for (const char* option : {"transport", "snapshot"})
    if (arguments.has(option)) words.insert(words.end(), {fmt::format("--{}", option), arguments.text(option)});
  if (arguments.has("json")) words.push_back("--json");
  if (std::string url = arguments.text("<url>"); url != "-") {
    int pipe[2];
    url += "\n";
    if (url.size() > 4096 || ::pipe(pipe) != 0 || ::write(pipe[1], url.data(), url.size()) < 0 || ::dup2(pipe[0], 0) < 0)
      return usage_error("the URL cannot be handed on");
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(helper.c_str(), argv.data());
  return Error{Errc::unavailable, "helper", fmt::format("cannot start {}: {}", helper, std::strerror(errno))};
}

}  // namespace

std::vector<Command> camera_commands() {
  const Option camera{"<camera>", "ID", "The camera's id", true};
  const Option tenant{"tenant", "ID", "Of this tenant only"}, site{"site", "ID", "Of this site only"};
  return {
      {"camera add", "Add a camera",
       "weir camera add --tenant t-01 --site site-A --id cam-1 --url-file cam-1.url\n"
       "weir camera add --tenant t-01 --site site-A --id cam-2 rtsp://10.0.0.7/stream1 --max-fps 6",
       "admin",
       with_api_options({{"<camera_url>", "URL", "rtsp:// or rtsps://"},
                         {"url-file", "FILE", "A file that holds the URL; - is standard input"},
                         {"id", "ID", "Its id"},
                         {"tenant", "ID", "Whose camera it is"},
                         {"site", "ID", "Where it stands"},
                         {"name", "TEXT", "What people call it"},
                         {"max-fps", "N", "How many frames a second are looked at"},
                         {"json-file", "FILE", "Everything else that the API takes, as a JSON object"},
                         {"create", "", "Create its tenant and its site where they are missing"}}),
       camera_add},
      {"camera list", "List the cameras", "weir camera list --site site-A --enabled", "admin",
       with_api_options({tenant, site, {"enabled", "", "Only those that are to be processed"}}), camera_list},
      {"camera show", "Show a camera, without its credentials", "weir camera show cam-1", "admin",
       with_api_options({camera}), camera_show},
      {"camera set", "Change fields of a camera",
       "weir camera set cam-1 max_fps=4 min_score=0.5 allow_labels=person,car\n"
       "weir camera set cam-1 motion_gating.enabled=false model.name=   # nothing after = is the default again\n"
       "weir camera set cam-1 --url-file cam-1.url",
       "admin",
       with_api_options({camera,
                         {"<changes>", "KEY=VALUE", "A field as the API names it, and its value; lists have commas", false, true},
                         {"url-file", "FILE", "A file that holds the new rtsp_url; - is standard input"}}),
       camera_set},
      {"camera enable", "Process a camera again", "weir camera enable cam-1", "admin", with_api_options({camera}),
       camera_enable},
      {"camera disable", "Stop processing a camera and keep its configuration", "weir camera disable cam-1", "admin",
       with_api_options({camera}), camera_disable},
      {"camera remove", "Remove a camera", "weir camera remove cam-1", "admin", with_api_options({camera}),
       camera_remove},
      {"camera import", "Add many cameras from a CSV file or a YAML list",
       "weir camera import cameras.csv --create\n"
       "# camera_uuid,tenant_id,site_id,rtsp_url,name",
       "admin",
       with_api_options({{"<file>", "FILE", ".csv, or .yaml with a list of cameras", true},
                         {"create", "", "Create tenants and sites that are missing"},
                         {"update", "", "Change cameras that exist already: what the file names, nothing else"}}),
       camera_import},
      {"camera export", "Write cameras as YAML that `weir camera import` takes",
       "weir camera export cameras.yaml --site site-A\n"
       "weir camera export backup.yaml --with-credentials   # to add them anew elsewhere; the file is private (0600)",
       "admin",
       with_api_options({{"<file>", "FILE", "Where to write; standard output by default"},
                         tenant,
                         site,
                         {"with-credentials", "", "With user names and passwords; otherwise *** stands for them, and an import "
                                                  "with --update keeps what the control plane has"}}),
       camera_export},
      {"camera snapshot", "Fetch a camera's latest picture from the runner that holds it",
       "weir camera snapshot cam-1 now.jpg", "admin",
       with_api_options({camera, {"<file>", "FILE", "Where to write the JPEG; standard output by default"}}),
       camera_snapshot},
      {"camera test",
       "Look at a camera once and say what is wrong with it and what to change",
       "weir camera test rtsp://192.0.2.7/stream1 --snapshot now.jpg\n"
       "echo 'rtsp://user:password@192.0.2.7/stream1' | weir camera test -",
       "",
       {{"<url>", "URL", "The camera's; - reads it from standard input, where nobody else sees it", true},
        {"transport", "tcp|udp", "How the video travels; tcp by default"},
        {"snapshot", "FILE", "Write the last picture as a JPEG"},
        {"json", "", "Print JSON"}},
       camera_test},
  };
}

}  // namespace weir::apps
