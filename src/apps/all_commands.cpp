#include "admin/admin.hpp"
#include "common/command.hpp"
#include "control_plane/serve.hpp"
#include "cluster/cluster.hpp"
#include "orchestrator/orchestrator.hpp"
#include "runner/runner.hpp"

namespace weir::apps {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = [] {
    std::vector<Command> all;
    for (auto group : {serve_commands(), runner_commands(), orchestrator_commands(), cluster_commands(), token_commands(), key_commands(),
                       tenant_commands(), site_commands(), camera_commands(), zone_commands(), model_commands(),
                       model_file_commands(), display_commands(), node_commands(), lease_commands(), stream_commands(),
                       event_commands(), status_commands(), size_commands(), store_commands(), about_commands()})
      all.insert(all.end(), group.begin(), group.end());
    return all;
  }();
  return commands;
}

}  // namespace weir::apps
