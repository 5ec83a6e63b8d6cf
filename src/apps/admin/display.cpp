// What detector clusters shall look at: displays, playlists and ad-hoc subscriptions. Their models are in model.cpp.
#include "admin.hpp"
#include "common/api.hpp"
#include "common/print.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace weir::apps {

Result<std::optional<std::int64_t>> whole_number(const Arguments& arguments, std::string_view option) {
  TRY(number, arguments.number(option));
  if (!number) return std::optional<std::int64_t>();
  if (*number == std::floor(*number) && std::abs(*number) <= 2147483647.0)
    return std::optional<std::int64_t>(static_cast<std::int64_t>(*number));
  return usage_error(fmt::format("--{} must be a whole number", option));
}

namespace {

using net::Method;

constexpr std::string_view kDisplays = "/v1/displays", kPlaylists = "/v1/playlists";
constexpr std::string_view kSubscriptions = "/v1/subscriptions";

// The fields of a body that options of this command give, each under its name.
void add_given(const Arguments& arguments, json::object& body,
               std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  for (auto [option, field] : fields)
    if (arguments.has(option)) body[field] = arguments.text(option);
}

Result<json::array> list_of(const Arguments& arguments, std::string_view route) {
  TRY(api, Api::connect(arguments));
  std::string target(route);
  add_query(target, "tenant_id", arguments.text("tenant"));
  return api.list(target);
}

Result<int> show_table(const Arguments& arguments, const json::array& items, std::string_view nothing,
                       std::vector<std::string> columns, std::initializer_list<std::string_view> fields) {
  if (arguments.has("json")) return done(arguments, json::object{{"items", items}}, "");
  if (items.empty()) return done(arguments, {}, nothing);
  Table table(std::move(columns));
  for (const json::value& item : items) {
    std::vector<std::string> cells;
    for (std::string_view field : fields) cells.push_back(cell(item, field));
    table.add(std::move(cells));
  }
  print(table.text());
  return 0;
}

Result<int> remove_one(const Arguments& arguments, std::string_view base, std::string_view what, std::string_view id) {
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(Method::del, route(base, id)));
  return done(arguments, answer, fmt::format("removed {} {}", what, id));
}

// ---- displays ----

Result<int> display_add(const Arguments& arguments) {
  std::string id = arguments.text("<display>");
  json::object body{{"display_id", id}};
  add_given(arguments, body,
            {{"tenant", "tenant_id"}, {"name", "name"}, {"camera", "camera_uuid"}, {"playlist", "playlist_id"}});
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(Method::post, std::string(kDisplays), body));
  bool complete = arguments.has("camera") && arguments.has("playlist");
  return done(arguments, answer,
              fmt::format("added display {}{}", id,
                          complete ? "" : "; nothing is detected for it until it has a camera and a playlist"));
}

Result<int> display_list(const Arguments& arguments) {
  TRY(items, list_of(arguments, kDisplays));
  return show_table(arguments, items, "no displays yet; add one with: weir display add d-1 --tenant t-01",
                    {"DISPLAY", "TENANT", "CAMERA", "PLAYLIST", "NAME"},
                    {"display_id", "tenant_id", "camera_uuid", "playlist_id", "name"});
}

Result<int> display_remove(const Arguments& arguments) {
  return remove_one(arguments, kDisplays, "display", arguments.text("<display>"));
}

// ---- playlists ----

Result<int> playlist_add(const Arguments& arguments) {
  std::string id = arguments.text("<playlist>");
  TRY(model, whole_number(arguments, "model"));
  json::object body{{"playlist_id", id}, {"model_id", model.value_or(0)}};
  add_given(arguments, body, {{"tenant", "tenant_id"}, {"name", "name"}});
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(Method::post, std::string(kPlaylists), body));
  return done(arguments, answer, fmt::format("added playlist {}", id));
}

Result<int> playlist_list(const Arguments& arguments) {
  TRY(items, list_of(arguments, kPlaylists));
  return show_table(arguments, items, "no playlists yet; add one with: weir playlist add lunch --tenant t-01 --model 1",
                    {"PLAYLIST", "TENANT", "MODEL", "NAME"}, {"playlist_id", "tenant_id", "model_id", "name"});
}

Result<int> playlist_remove(const Arguments& arguments) {
  return remove_one(arguments, kPlaylists, "playlist", arguments.text("<playlist>"));
}

// ---- subscriptions ----

// "100,50,740,410" as the four corners.
Status add_crop(const std::string& text, json::object& body) {
  std::vector<std::string> corners;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    corners.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  constexpr std::array<std::string_view, 4> kFields = {"crop_x1", "crop_y1", "crop_x2", "crop_y2"};
  bool numbers = corners.size() == kFields.size() && std::ranges::all_of(corners, [](const std::string& corner) {
    return !corner.empty() && corner.size() <= 5 && corner.find_first_not_of("0123456789") == corner.npos;
  });
  if (!numbers) return usage_error("--crop must be X1,Y1,X2,Y2: the left upper and the right lower corner in pixels");
  for (size_t i = 0; i < kFields.size(); ++i) body[kFields[i]] = std::stoi(corners[i]);
  return ok();
}

Result<int> subscription_add(const Arguments& arguments) {
  std::string id = arguments.text("<subscription>");
  TRY(model, whole_number(arguments, "model"));
  json::object body{{"subscription_identifier", id}, {"model_id", model.value_or(0)}};
  add_given(arguments, body, {{"snapshot-url", "snapshot_url"}});
  if (arguments.text("snapshot-url").find('@') != std::string::npos)
    complain("note: other users of this machine can see a command's arguments, and so this address's password");
  TRY(interval, whole_number(arguments, "snapshot-interval-ms"));
  if (interval) body["snapshot_interval_ms"] = *interval;
  if (arguments.has("crop")) {
    TRY(cropped, add_crop(arguments.text("crop"), body));
  }
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(Method::post, std::string(kSubscriptions), body));
  return done(arguments, answer, fmt::format("added subscription {}", id));
}

Result<int> subscription_list(const Arguments& arguments) {
  TRY(items, list_of(arguments, kSubscriptions));
  return show_table(arguments, items,
                    "no ad-hoc subscriptions; displays have theirs without: weir display list shows them",
                    {"SUBSCRIPTION", "TENANT", "CAMERA", "MODEL", "CREATED"},
                    {"subscription_identifier", "tenant_id", "camera_uuid", "model_id", "created_at"});
}

Result<int> subscription_remove(const Arguments& arguments) {
  return remove_one(arguments, kSubscriptions, "subscription", arguments.text("<subscription>"));
}

}  // namespace

std::vector<Command> display_commands() {
  const Option display{"<display>", "ID", "Its id, without a semicolon", true};
  const Option playlist{"<playlist>", "ID", "Its id", true};
  const Option subscription{"<subscription>", "ID", "Its identifier: DISPLAY;CAMERA", true};
  const Option tenant{"tenant", "ID", "Whose it is; by default the token's tenant"};
  const Option of_tenant{"tenant", "ID", "Of this tenant only"};
  const Option name{"name", "TEXT", "What people call it"};
  const Option model{"model", "N", "The number of the model that looks; see weir model list", true};
  return {
      {"display add", "Add a display, for which a detector cluster looks at a camera",
       "weir display add entrance --tenant t-01 --camera cam-1 --playlist lunch", "admin",
       with_api_options({display,
                         tenant,
                         name,
                         {"camera", "ID", "The camera before it; the cluster that processes it looks"},
                         {"playlist", "ID", "What it shows; the playlist's model looks"}}),
       display_add},
      {"display list", "List the displays", "weir display list --tenant t-01", "admin", with_api_options({of_tenant}),
       display_list},
      {"display remove", "Remove a display", "weir display remove entrance", "admin", with_api_options({display}),
       display_remove},
      {"playlist add", "Add a playlist, which says what model looks for the displays that show it",
       "weir playlist add lunch --tenant t-01 --model 1", "admin", with_api_options({playlist, tenant, name, model}),
       playlist_add},
      {"playlist list", "List the playlists", "weir playlist list", "admin", with_api_options({of_tenant}),
       playlist_list},
      {"playlist remove", "Remove a playlist that no display shows", "weir playlist remove lunch", "admin",
       with_api_options({playlist}), playlist_remove},
      {"subscription add", "Have a detector cluster look at a camera without a display, or otherwise than for one",
       "weir subscription add 'kiosk;cam-1' --model 1 --crop 100,50,740,410", "admin",
       with_api_options({subscription,
                         model,
                         {"snapshot-url", "URL", "Where single pictures come from; by default as the camera says"},
                         {"snapshot-interval-ms", "N", "How often one is fetched"},
                         {"crop", "X1,Y1,X2,Y2", "The part of the picture that counts; by default the camera's"}}),
       subscription_add},
      {"subscription list", "List the ad-hoc subscriptions", "weir subscription list", "admin", with_api_options({}),
       subscription_list},
      {"subscription remove", "End an ad-hoc subscription", "weir subscription remove 'kiosk;cam-1'", "admin",
       with_api_options({subscription}), subscription_remove},
  };
}

}  // namespace weir::apps
