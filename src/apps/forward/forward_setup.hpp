// What a process that forwards a stream does before it forwards: it hides, reads its settings, opens its log, and
// refuses what cannot work. Shared by `weir-egress` and `weir-worker stream`. Main thread only.
#pragma once

#include "common/command.hpp"

#include "weir/egress/report.hpp"
#include "weir/forward/course.hpp"

namespace weir::apps {

// A stop that comes while the process is still being set up is heard afterwards: SIG_BLOCK first, SIG_UNBLOCK later.
void hold_signals(int how);

// How such a process is called by its log: the service's name in every line, and the first word of its files.
struct ForwardNames {
  std::string_view service;  // "egress-forwarder"
  std::string_view file;     // "egress" makes egress-<stream_id>.log
};
// The settings, from a descriptor that nobody can read again; lines that name the stream; a log file in a folder of
// the process's own. Nobody but root may look into the process from now on.
Result<Settings> set_up_forward(const Arguments& arguments, const ForwardNames& names);
std::string forward_log_folder(const Settings& settings);

// Stream, run and instance; config_invalid where one is missing.
Result<egress::Identity> read_identity(const Settings& settings);
forward::Policy read_policy(const Settings& settings);

// A secret that came by the environment or a flag is named in a warning, and wiped from the environment. `always` are
// settings that are secret as a whole; of the hub's address only user and password are.
void warn_of_exposed(const Settings& settings, const egress::Voice& voice, std::span<const std::string_view> always);

// Logs why the process did not start, and answers with the exit code.
int refuse_forward(const egress::Voice& voice, const Error& error);

}  // namespace weir::apps
