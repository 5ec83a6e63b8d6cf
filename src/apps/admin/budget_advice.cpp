#include "budget_advice.hpp"

#include "common/print.hpp"

#include <cmath>

namespace weir::apps {

namespace {
constexpr Duration kNoticed = 8s;   // a dead runner's leases run out (lease_ttl_s, 6 s), others take them and dial
constexpr Duration kPromised = 10s;

double number(const json::value& object, std::string_view field) {
  const json::value* found = object.is_object() ? object.get_object().if_contains(field) : nullptr;
  return found != nullptr && found->is_number() ? found->to_number<double>() : 0;
}
}  // namespace

std::optional<Duration> takeover_of(const SiteBudget& budget) {
  double without = budget.cameras - std::floor(budget.capacity);
  if (without <= 0) return kNoticed;
  if (budget.refill_per_min <= 0) return std::nullopt;
  return kNoticed + from_seconds(without * 60 / budget.refill_per_min);
}

std::string budget_warning(const SiteBudget& budget) {
  std::optional<Duration> takes = takeover_of(budget);
  if (takes && *takes <= kPromised) return "";
  return fmt::format(
      "a takeover of all {} cameras of site {} would {}: its budget allows {:.0f} connections at once and {:.0f} a "
      "minute after that; if the recorder there bears more: weir site budget {} --capacity {}",
      budget.cameras, budget.site, takes ? fmt::format("take about {:.0f} s", std::ceil(seconds(*takes))) : "never end",
      budget.capacity, budget.refill_per_min, budget.site, budget.cameras);
}

std::set<std::string> sites_in(const std::vector<CameraLine>& cameras) {
  std::set<std::string> out;
  for (const CameraLine& line : cameras)
    if (const json::value* site = line.camera.if_contains("site_id"); site != nullptr && site->is_string())
      out.insert(std::string(site->get_string()));
  return out;
}

std::vector<std::string> budget_warnings(Api& api, const std::set<std::string>& sites) {
  std::vector<std::string> out;
  for (const std::string& id : sites) {
    auto site = api.get(route("/v1/sites", id));
    if (!site) continue;
    std::string warning = budget_warning({id, static_cast<int>(number(*site, "cameras_enabled")),
                                          number(*site, "capacity"), number(*site, "refill_rate")});
    if (!warning.empty()) out.push_back(std::move(warning));
  }
  return out;
}

}  // namespace weir::apps
