#include "admin.hpp"
#include "common/api.hpp"
#include "common/print.hpp"

#include "weir/base/clock.hpp"
#include "weir/net/token.hpp"

#include <filesystem>

namespace weir::apps {

Result<net::Role> read_role(const std::string& text) {
  for (const auto& [role, name] : net::kRoleNames)
    if (name == text) return role;
  return usage_error("--role must be one of: admin, runner, worker, viewer");
}

namespace {

Result<int> token(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(role, read_role(arguments.text("role")));
  std::string sub = arguments.text("sub");
  if (auto problem = id_problem(sub); !problem.empty()) return usage_error(fmt::format("--sub {}", problem));
  TenantId tenant;
  if (arguments.has("tenant")) {
    auto parsed = TenantId::parse(arguments.text("tenant"));
    if (!parsed) return usage_error(fmt::format("--tenant {}", id_problem(arguments.text("tenant"))));
    tenant = *parsed;
  }
  auto ttl = arguments.has("ttl") ? parse_duration(arguments.text("ttl")) : settings.duration("token_ttl_s");
  if (!ttl || *ttl < 1s || *ttl > 24h * 366) return usage_error("--ttl must be a time such as 90s, 15m or 2h");

  std::string path = secret_file(settings);
  // A key made here in a mistyped folder would sign tokens that no control plane accepts; where a file is named by
  // auth_secret_file, it may be made first.
  if (settings.text("auth_secret_file").empty() && !std::filesystem::exists(path))
    return Error{Errc::not_found, "no_secret",
                 fmt::format("there is no secret at {}: `weir up` and `weir control-plane` create it, or give "
                             "--auth-secret-file",
                             path)};
  TRY(key, net::TokenKey::load_or_create(path));
  WallTime expires = wall_now() + *ttl;
  std::string signed_token = key.sign({.sub = sub, .role = role, .tenant = tenant, .expires = expires}).reveal();
  if (!arguments.has("json")) {
    print_line(signed_token);
    return 0;
  }
  json::object out{{"token", signed_token}, {"role", arguments.text("role")}, {"sub", sub}};
  if (!tenant.empty()) out["tenant_id"] = tenant.str();
  out["expires_at"] = to_iso(expires);
  print_json(out);
  return 0;
}

}  // namespace

std::vector<Command> token_commands() {
  return {{.path = "token",
           .sentence = "Print a token for the API, made from the secret; needs no server",
           .example = "weir token --role admin --sub me\n"
                      "weir token --auth-secret-file secret --role runner --sub runner-1 --tenant t-01 --ttl 1h",
           .settings = "token",
           .options = {{"role", "ROLE", "admin, runner, worker or viewer", true},
                       {"sub", "NAME", "Whom the token names; a runner's own id", true},
                       {"tenant", "ID", "See this tenant only"},
                       {"ttl", "TIME", "How long it lives: 90s, 15m, 2h"},
                       {"json", "", "Print JSON"}},
           .run = token}};
}

}  // namespace weir::apps
