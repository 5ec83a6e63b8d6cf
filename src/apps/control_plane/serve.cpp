#include "serve.hpp"

#include "common/files.hpp"
#include "common/logging.hpp"
#include "common/print.hpp"
#include "server_process.hpp"
#include "up/up.hpp"

namespace weir::apps {

namespace {

Result<int> control_plane(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(logging, configure_logging(settings));
  Secret url = settings.secret("database_url");
  if (url.empty()) {
    TRY(made, make_private_folder(settings.text("state_dir")));
    url = embedded_store(settings);
  } else if (settings.text("auth_secret_file").empty()) {
    TRY(made, make_private_folder(settings.text("state_dir")));
  }
  ServerProcess process(arguments, settings);
  TRY(sealed, process.use_certificate());
  TRY(started, process.start(url));
  print_line("listening on " + process.url());
  return process.run(std::nullopt);
}

}  // namespace

std::vector<Command> serve_commands() {
  return {
      up_command(),
      {"control-plane",
       "Start a control plane: the authority on who owns which camera",
       "weir control-plane --db sqlite:weir.db\n"
       "weir control-plane --db postgres://weir@db/weir --listen 0.0.0.0:8080 --auth-secret-file /etc/weir/auth.secret",
       "control-plane",
       {},
       control_plane},
  };
}

}  // namespace weir::apps
