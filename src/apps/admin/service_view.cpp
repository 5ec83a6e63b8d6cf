#include "service_view.hpp"

#include "common/print.hpp"
#include "common/words.hpp"
#include "stream_wishes.hpp"

#include <map>

namespace weir::apps {

namespace {

bool is_true(const json::value& item, std::string_view name) {
  const json::value* found = item.is_object() ? item.get_object().if_contains(name) : nullptr;
  return found != nullptr && found->is_bool() && found->get_bool();
}

}  // namespace

ServiceView service_view(const json::array& cameras, const json::array& cluster_leases, const json::array& streams) {
  std::map<std::string, ClusterShown> clusters;
  for (const json::value& camera : cameras) {
    if (!is_true(camera, "enabled") || cell(camera, "processing") != "cluster") continue;
    std::string named = cell(camera, "cluster"), name = named == "-" ? "default" : named;
    ++clusters.try_emplace(name, ClusterShown{.name = name}).first->second.cameras;
  }
  for (const json::value& lease : cluster_leases)
    if (auto at = clusters.find(cell(lease, "cluster")); at != clusters.end()) at->second.master = cell(lease, "runner_id");
  ServiceView out;
  for (auto& [name, cluster] : clusters) out.clusters.push_back(std::move(cluster));
  for (const json::value& stream : streams) {
    ++out.streams;
    out.held += cell(stream, "holder") != "-";
    if (std::string problem = stream_problem(stream); !problem.empty())
      out.troubles.push_back({cell(stream, "stream_id"), std::move(problem)});
  }
  return out;
}

std::string troubles_text(const ServiceView& view) {
  std::string out;
  for (const ClusterShown& each : view.clusters)
    if (each.master.empty())
      out += fmt::format("cluster {} has no master: nobody looks at its {}; ", each.name, counted(each.cameras, "camera"));
  if (!view.troubles.empty())
    out += fmt::format("{} {} a problem, {}: {}; ", counted(static_cast<int>(view.troubles.size()), "published stream"),
                       view.troubles.size() == 1 ? "has" : "have", view.troubles[0].stream, view.troubles[0].problem);
  return out;
}

}  // namespace weir::apps
