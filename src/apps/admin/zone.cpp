#include "admin.hpp"
#include "common/api.hpp"
#include "common/print.hpp"
#include "common/words.hpp"
#include "warnings.hpp"

namespace weir::apps {

namespace {

using net::Method;

// "100,100 700,100 700,500": as a person reads the corners off a picture.
Result<json::array> polygon_of(std::string_view text) {
  json::array points;
  for (const std::string& corner : split_words(text, " ;\t\n")) {
    std::vector<std::string> pair = split_words(corner, ",");
    std::optional<double> x = pair.size() == 2 ? number_in(pair[0]) : std::nullopt;
    std::optional<double> y = pair.size() == 2 ? number_in(pair[1]) : std::nullopt;
    if (!x || !y)
      return usage_error(fmt::format("--polygon: \"{}\" is not a corner; each is X,Y in pixels, with blanks between the "
                                     "corners: --polygon '100,100 700,100 700,500'", corner));
    points.push_back(json::array{*x, *y});
  }
  return points;
}

std::string polygon_text(const json::value& zone) {
  std::string out;
  const json::value* points = zone.is_object() ? zone.get_object().if_contains("polygon") : nullptr;
  if (points == nullptr || !points->is_array()) return "-";
  for (const json::value& point : points->get_array())
    if (point.is_array() && point.get_array().size() == 2)
      out += fmt::format("{}{:g},{:g}", out.empty() ? "" : " ", point.get_array()[0].to_number<double>(),
                         point.get_array()[1].to_number<double>());
  return out;
}

std::string labels_text(const json::value& zone) {
  const json::value* labels = zone.is_object() ? zone.get_object().if_contains("allow_labels") : nullptr;
  if (labels == nullptr || !labels->is_array()) return "-";
  std::vector<std::string> words;
  for (const json::value& label : labels->get_array())
    if (label.is_string()) words.emplace_back(label.get_string());
  return fmt::format("{}", fmt::join(words, ","));
}

Result<json::object> zone_body(const Arguments& arguments) {
  json::object body;
  for (auto [option, field] : {std::pair{"id", "zone_id"}, {"priority", "priority"}, {"min-score", "min_score"}}) {
    TRY(given, arguments.number(option));
    if (given) body[field] = *given;
  }
  if (arguments.has("name")) body["name"] = arguments.text("name");
  if (arguments.has("kind")) body["kind"] = arguments.text("kind");
  if (arguments.has("labels")) {
    json::array labels;
    for (std::string& label : split_words(arguments.text("labels"), ",")) labels.push_back(json::value(std::move(label)));
    body["allow_labels"] = std::move(labels);
  }
  TRY(polygon, polygon_of(arguments.text("polygon")));
  body["polygon"] = std::move(polygon);
  return body;
}

// The number after the highest one that the camera has.
Result<std::int64_t> next_zone_id(Api& api, const std::string& zones) {
  TRY(present, api.list(zones));
  std::int64_t highest = 0;
  for (const json::value& zone : present)
    if (const json::value* id = zone.is_object() ? zone.get_object().if_contains("zone_id") : nullptr;
        id != nullptr && id->is_int64())
      highest = std::max(highest, id->get_int64());
  return highest + 1;
}

Result<json::value> put_zone(Api& api, const std::string& camera, const json::object& body, bool replace) {
  std::string zones = route("/v1/cameras", camera, "/zones");
  if (replace && body.contains("zone_id")) {
    auto replaced = api.send(Method::put, fmt::format("{}/{}", zones, json::to_text(body.at("zone_id"))), body);
    if (replaced || replaced.error().reason != "zone_not_found") return replaced;
  }
  auto added = api.send(Method::post, zones, body);
  if (added || added.error().reason != "zone_exists") return added;
  Error taken = added.error();
  taken.message = fmt::format("camera {} has a zone {} already: --replace puts this one in its place, and without --id "
                              "the next free number is taken", camera, json::to_text(body.at("zone_id")));
  return taken;
}

Result<int> zone_add(const Arguments& arguments) {
  std::string camera = arguments.text("<camera>");
  TRY(body, zone_body(arguments));
  TRY(api, Api::connect(arguments));
  if (!body.contains("zone_id")) {
    TRY(next, next_zone_id(api, route("/v1/cameras", camera, "/zones")));
    body["zone_id"] = next;
  } else if (double id = body.at("zone_id").to_number<double>(); id == static_cast<double>(static_cast<int>(id))) {
    body["zone_id"] = static_cast<int>(id);
  }
  TRY(answer, put_zone(api, camera, body, arguments.has("replace")));
  return done(arguments, answer, fmt::format("camera {} has zone {}", camera, cell(answer, "zone_id")));
}

// The zones of one camera, of a site's cameras or of all cameras.
Result<json::array> zones_of(Api& api, const Arguments& arguments) {
  if (arguments.has("<camera>")) return api.list(route("/v1/cameras", arguments.text("<camera>"), "/zones"));
  std::string target = "/v1/cameras";
  add_query(target, "site_id", arguments.text("site"));
  TRY(cameras, api.list(target));
  json::array zones;
  for (const json::value& camera : cameras) {
    const json::value* own = camera.is_object() ? camera.get_object().if_contains("zones") : nullptr;
    if (own == nullptr || !own->is_array()) continue;
    for (const json::value& zone : own->get_array()) {
      json::object shown{{"camera_uuid", cell(camera, "camera_uuid")}};
      if (zone.is_object()) shown.insert(zone.get_object().begin(), zone.get_object().end());
      zones.push_back(std::move(shown));
    }
  }
  return zones;
}

Result<int> zone_list(const Arguments& arguments) {
  if (arguments.has("<camera>") && arguments.has("site"))
    return usage_error("give a camera or --site, not both; see weir zone list --help");
  TRY(api, Api::connect(arguments));
  TRY(items, zones_of(api, arguments));
  if (arguments.has("json")) return done(arguments, json::object{{"items", items}}, "");
  if (items.empty())
    return done(arguments, {}, "no zones: detections of the whole picture count; add one with: "
                               "weir zone add CAMERA --polygon '100,100 700,100 700,500'");
  Table table({"CAMERA", "ZONE", "NAME", "KIND", "PRIORITY", "LABELS", "MIN SCORE", "POLYGON"});
  for (const json::value& item : items)
    table.add({cell(item, "camera_uuid"), cell(item, "zone_id"), cell(item, "name"), cell(item, "kind"),
               cell(item, "priority"), labels_text(item), cell(item, "min_score"), polygon_text(item)});
  print(table.text());
  return 0;
}

Result<std::string> zone_route(const Arguments& arguments) {
  std::optional<double> id = number_in(arguments.text("<zone>"));
  if (!id) return usage_error("ZONE is a zone's number, as `weir zone list` shows it");
  return route("/v1/cameras", arguments.text("<camera>"), fmt::format("/zones/{:g}", *id));
}

Result<int> zone_show(const Arguments& arguments) {
  TRY(target, zone_route(arguments));
  TRY(api, Api::connect(arguments));
  TRY(answer, api.get(target));
  if (arguments.has("json") || !answer.is_object()) return done(arguments, answer, "");
  warn_of(answer);
  answer.get_object().erase("warnings");
  print(field_lines(answer.get_object()));
  return 0;
}

Result<int> zone_remove(const Arguments& arguments) {
  TRY(target, zone_route(arguments));
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(Method::del, target));
  return done(arguments, answer,
              fmt::format("removed zone {} of camera {}", arguments.text("<zone>"), arguments.text("<camera>")));
}

}  // namespace

std::vector<Command> zone_commands() {
  const Option camera{"<camera>", "CAMERA", "The camera's id", true}, zone{"<zone>", "ZONE", "The zone's number", true};
  return {
      {"zone add", "Add a zone to a camera, or replace one",
       "weir zone add cam-1 --name gate --polygon '100,100 700,100 700,500' --labels person,car\n"
       "weir camera snapshot cam-1 now.jpg   # a picture to read the corners off\n"
       "weir zone add cam-1 --id 2 --name tree --kind exclude --polygon '0,0 90,0 90,200' --replace",
       "admin",
       with_api_options({camera,
                         {"polygon", "CORNERS", "X,Y of each corner in pixels, with blanks between", true},
                         {"id", "N", "Its number within the camera; the next free one by default"},
                         {"name", "TEXT", "What people call it"},
                         {"kind", "KIND", "include (default): what lies in it counts; exclude: what lies in it does not"},
                         {"priority", "N", "Of zones that overlap the one with the higher priority decides; 100 by default"},
                         {"labels", "A,B", "Only these labels count in it; all that the camera allows by default"},
                         {"min-score", "N", "Scores count from here on in it, instead of the camera's"},
                         {"replace", "", "Put it in the place of the zone with that number, if there is one"}}),
       zone_add},
      {"zone list", "List the zones of a camera, a site or everywhere", "weir zone list cam-1\nweir zone list --site site-A",
       "admin",
       with_api_options({{"<camera>", "CAMERA", "The camera's id; all cameras by default"}, {"site", "ID", "Of this site only"}}),
       zone_list},
      {"zone show", "Show a zone", "weir zone show cam-1 2", "admin", with_api_options({camera, zone}), zone_show},
      {"zone remove", "Remove a zone", "weir zone remove cam-1 2", "admin", with_api_options({camera, zone}), zone_remove},
  };
}

}  // namespace weir::apps
