#include "admin.hpp"
#include "common/api.hpp"
#include "common/print.hpp"

namespace weir::apps {

namespace {

using net::Method;

Result<int> key_add(const Arguments& arguments) {
  TRY(role, read_role(arguments.text("role")));
  TRY(api, Api::connect(arguments));
  json::object body{{"role", arguments.text("role")}, {"sub", arguments.text("sub")}};
  if (arguments.has("tenant")) body["tenant_id"] = arguments.text("tenant");
  if (arguments.has("name")) body["name"] = arguments.text("name");
  TRY(answer, api.send(Method::post, "/v1/api-keys", body));
  if (arguments.has("json")) print_json(answer);
  else print_line(cell(answer, "api_key"));
  return 0;
}

Result<int> key_list(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(items, api.list("/v1/api-keys"));
  if (arguments.has("json")) {
    print_json(json::object{{"items", items}});
    return 0;
  }
  if (items.empty()) {
    print_line("no keys yet; add one with: weir key add --role runner --sub runner-1");
    return 0;
  }
  Table table({"KEY", "ROLE", "SUB", "TENANT", "NAME", "CREATED", "LAST USED"});
  for (const auto& item : items)
    table.add({cell(item, "key_id"), cell(item, "role"), cell(item, "sub"), cell(item, "tenant_id"), cell(item, "name"),
               cell(item, "created_at"), cell(item, "last_used_at")});
  print(table.text());
  return 0;
}

Result<int> key_revoke(const Arguments& arguments) {
  std::string id = arguments.text("<key>");
  // A key itself must not get into a URL.
  if (id.starts_with("wk_")) return usage_error("give the key's id, not the key: the first part after wk_");
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(Method::del, route("/v1/api-keys", id)));
  if (arguments.has("json")) print_json(answer);
  else print_line(harmless(fmt::format("revoked key {}; tokens it bought live on until they expire", id)));
  return 0;
}

}  // namespace

std::vector<Command> key_commands() {
  return {
      {"key add", "Add an API key and print it; it is shown this once",
       "weir key add --role runner --sub runner-1 >key", "admin",
       with_api_options({{"role", "ROLE", "Of the tokens it buys: admin, runner, worker or viewer", true},
                         {"sub", "NAME", "Whom they name; a runner's own id", true},
                         {"tenant", "ID", "See this tenant only"},
                         {"name", "TEXT", "What people call it"}}),
       key_add},
      {"key list", "List the API keys, without their secrets", "weir key list", "admin", with_api_options({}),
       key_list},
      {"key revoke", "Revoke an API key", "weir key revoke 3f9c0a5b7e21d844", "admin",
       with_api_options({{"<key>", "ID", "Its id, as the list shows it", true}}), key_revoke},
  };
}

}  // namespace weir::apps
