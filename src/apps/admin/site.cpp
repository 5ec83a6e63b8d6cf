#include "admin.hpp"
#include "budget_advice.hpp"
#include "common/api.hpp"
#include "common/print.hpp"
#include "warnings.hpp"

namespace weir::apps {

namespace {

using net::Method;

Result<int> tenant_add(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  std::string id = arguments.text("<tenant>");
  json::object body{{"tenant_id", id}};
  if (arguments.has("name")) body["name"] = arguments.text("name");
  TRY(answer, api.send(Method::post, "/v1/tenants", body));
  return done(arguments, answer, fmt::format("added tenant {}", id));
}

Result<int> tenant_list(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(items, api.list("/v1/tenants"));
  if (arguments.has("json")) return done(arguments, json::object{{"items", items}}, "");
  if (items.empty()) return done(arguments, {}, "no tenants yet; add one with: weir tenant add t-01");
  Table table({"TENANT", "NAME", "CREATED"});
  for (const auto& item : items) table.add({cell(item, "tenant_id"), cell(item, "name"), cell(item, "created_at")});
  print(table.text());
  return 0;
}

Result<int> tenant_remove(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  std::string id = arguments.text("<tenant>");
  TRY(answer, api.send(Method::del, route("/v1/tenants", id)));
  return done(arguments, answer, fmt::format("removed tenant {}", id));
}

Result<int> site_add(const Arguments& arguments) {
  std::string id = arguments.text("<site>");
  json::object body{{"site_id", id}, {"tenant_id", arguments.text("tenant")}};
  if (arguments.has("name")) body["name"] = arguments.text("name");
  TRY(capacity, arguments.number("capacity"));
  TRY(refill, arguments.number("refill-rate"));
  if (capacity) body["capacity"] = *capacity;
  if (refill) body["refill_rate"] = *refill;
  TRY(api, Api::connect(arguments));
  auto answer = api.send(Method::post, "/v1/sites", body);
  if (!answer && answer.error().reason == "tenant_not_found") {
    Error missing = answer.error();
    missing.message = fmt::format("there is no tenant {0}: add it with: weir tenant add {0}", arguments.text("tenant"));
    return missing;
  }
  if (!answer) return answer.error();
  return done(arguments, *answer, fmt::format("added site {}", id));
}

Result<int> site_list(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  std::string target = "/v1/sites";
  add_query(target, "tenant_id", arguments.text("tenant"));
  TRY(items, api.list(target));
  if (arguments.has("json")) return done(arguments, json::object{{"items", items}}, "");
  if (items.empty() && arguments.has("tenant"))
    return done(arguments, {},
                fmt::format("no site of tenant {}; all there are: weir site list", arguments.text("tenant")));
  if (items.empty()) return done(arguments, {}, "no sites yet; add one with: weir site add site-A --tenant t-01");
  Table table({"SITE", "TENANT", "NAME", "TOKENS", "CAPACITY", "REFILL/MIN", "CREATED"});
  for (const auto& item : items)
    table.add({cell(item, "site_id"), cell(item, "tenant_id"), cell(item, "name"), cell(item, "tokens"),
               cell(item, "capacity"), cell(item, "refill_rate"), cell(item, "created_at")});
  print(table.text());
  return 0;
}

Result<int> show(const Arguments& arguments, const json::value& answer) {
  if (arguments.has("json") || !answer.is_object()) print_json(answer);
  else print(field_lines(answer.get_object()));
  return 0;
}

Result<int> site_show(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(answer, api.get(route("/v1/sites", arguments.text("<site>"))));
  return show(arguments, answer);
}

Result<int> site_budget(const Arguments& arguments) {
  json::object body;
  constexpr std::pair<const char*, const char*> kFields[] = {
      {"capacity", "capacity"}, {"refill-rate", "refill_rate"}, {"tokens", "tokens"}};
  for (auto [option, field] : kFields) {
    TRY(given, arguments.number(option));
    if (given) body[field] = *given;
  }
  TRY(api, Api::connect(arguments));
  std::string target = route("/v1/sites", arguments.text("<site>"), "/budget");
  TRY(present, api.get(target));
  if (body.empty()) {
    for (const std::string& warning : budget_warnings(api, {arguments.text("<site>")})) warn(warning);
    return show(arguments, present);
  }
  // What was not given stays as it is.
  for (auto field : {"capacity", "refill_rate"})
    if (const auto* v = present.is_object() ? present.get_object().if_contains(field) : nullptr;
        v != nullptr && !body.contains(field))
      body[field] = *v;
  TRY(answer, api.send(Method::put, target, body));
  return show(arguments, answer);
}

Result<int> site_remove(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  std::string id = arguments.text("<site>");
  TRY(answer, api.send(Method::del, route("/v1/sites", id)));
  return done(arguments, answer, fmt::format("removed site {}", id));
}

}  // namespace

std::vector<Command> tenant_commands() {
  return {
      {"tenant add", "Add a tenant", "weir tenant add t-01 --name \"First tenant\"", "admin",
       with_api_options({{"<tenant>", "ID", "Its id", true}, {"name", "TEXT", "What people call it"}}), tenant_add},
      {"tenant list", "List the tenants", "weir tenant list", "admin", with_api_options({}), tenant_list},
      {"tenant remove", "Remove a tenant that has no sites", "weir tenant remove t-01", "admin",
       with_api_options({{"<tenant>", "ID", "Its id", true}}), tenant_remove},
  };
}

std::vector<Command> site_commands() {
  const Option site{"<site>", "ID", "Its id", true};
  const Option capacity{"capacity", "N", "How many cameras may be dialled at once"};
  const Option refill{"refill-rate", "N", "How many more each minute"};
  return {
      {"site add", "Add a site to a tenant", "weir site add site-A --tenant t-01 --capacity 10 --refill-rate 60",
       "admin",
       with_api_options({site,
                         {"tenant", "ID", "Whose site it is", true},
                         {"name", "TEXT", "What people call it"},
                         capacity,
                         refill}),
       site_add},
      {"site list", "List the sites", "weir site list --tenant t-01", "admin",
       with_api_options({{"tenant", "ID", "Of this tenant only"}}), site_list},
      {"site show", "Show a site", "weir site show site-A", "admin", with_api_options({site}), site_show},
      {"site budget", "Show or set how quickly a site's cameras may be dialled",
       "weir site budget site-A\nweir site budget site-A --capacity 20 --refill-rate 120", "admin",
       with_api_options({site, capacity, refill, {"tokens", "N", "How many are left right now"}}), site_budget},
      {"site remove", "Remove a site that has no cameras", "weir site remove site-A", "admin", with_api_options({site}),
       site_remove},
  };
}

}  // namespace weir::apps
