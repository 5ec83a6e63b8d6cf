#include "weir/orchestrator/programs.hpp"

#include "weir/base/json.hpp"
#include "weir/base/settings.hpp"

namespace weir::orchestrator {

using stream::Role;

namespace {

std::string_view role_word(Role role) { return role == Role::worker ? "worker" : "forward"; }

// A path of a Unix socket has at most 107 bytes; the end of an instance id tells instances apart.
std::string socket_path(const Programs& programs, Role role, const std::string& instance) {
  std::string tail = instance.size() > 14 ? instance.substr(instance.size() - 14) : instance;
  return fmt::format("{}/{}-{}.sock", programs.folder, role_word(role).substr(0, 1), tail);
}

Secret url_of(const Programs& programs, const std::string& path) {
  std::string base = programs.rtsp_base.reveal();
  while (base.ends_with('/')) base.pop_back();
  return Secret(base + "/" + path);
}

KeptSpec spec_of(const Programs& programs, const stream::StreamId& id, Role role, const std::string& run_id,
                 const std::string& instance, lease::Version version, Instant now, Instant valid_until) {
  KeptSpec spec;
  spec.name = fmt::format("{}.{}", id.str(), role_word(role));
  spec.output = fmt::format("{}/{}.log", programs.folder, spec.name);
  spec.note = write_note({id, role, run_id, instance, now.time_since_epoch().count()});
  spec.version = version.n;
  spec.valid_until = valid_until;
  return spec;
}

// What Weir's own two children have in common.
json::object document_of(const Programs& programs, const stream::StreamId& id, const std::string& run_id,
                         const std::string& instance, const KeptSpec& spec) {
  return {{"stream_id", id.str()},
          {"mediamtx_rtsp_base", programs.rtsp_base.reveal()},
          {"run_id", run_id},
          {"instance_id", instance},
          {"lease_version", spec.version},
          {"lease_valid_until_us", spec.valid_until.time_since_epoch().count()},
          {"lease_socket", spec.lease_socket},
          {"log_dir", ""},
          {"log_level", programs.log_level}};
}

std::string replaced(std::string word, const std::vector<std::pair<std::string_view, std::string>>& by) {
  for (const auto& [name, value] : by) {
    std::string mark = fmt::format("{{{}}}", name);
    for (size_t at = 0; (at = word.find(mark, at)) != std::string::npos; at += value.size())
      word.replace(at, mark.size(), value);
  }
  return word;
}

}  // namespace

Result<std::vector<std::string>> read_command(std::string_view text) {
  auto wrong = [](std::string_view why) {
    return Error{Errc::invalid, "bad_worker_command",
                 fmt::format(R"(worker_command must be a JSON array of words, such as ["/opt/worker","{{input_url}}"]: {})",
                             why)};
  };
  std::vector<std::string> words;
  if (text.empty()) return words;
  auto parsed = json::parse_text(text);
  if (!parsed || !parsed->is_array()) return wrong("it is not an array");
  for (const json::value& each : parsed->get_array()) {
    if (!each.is_string()) return wrong("it holds something else than words");
    words.emplace_back(each.get_string());
  }
  if (words.empty() || !words[0].starts_with('/')) return wrong("its first word is not a path that begins with /");
  return words;
}

std::string write_note(const ChildNote& note) {
  return json::to_text(json::object{{"stream_id", note.stream.str()},
                                    {"role", json::write_value(note.role)},
                                    {"run_id", note.run_id},
                                    {"instance_id", note.instance},
                                    {"started_us", note.started_us}});
}

template <class V>
void fields(V& v, ChildNote& n) {
  v.required("stream_id", n.stream);
  v.required("role", n.role);
  v.required("run_id", n.run_id);
  v.required("instance_id", n.instance);
  v.optional("started_us", n.started_us);
}

Result<ChildNote> read_note(std::string_view text) { return json::read_text<ChildNote>(text); }

KeptSpec worker_spec(const Programs& programs, const stream::StreamId& id, const AboutStream& about,
                     const stream::StartWorker& start, Instant now, Instant valid_until) {
  KeptSpec spec = spec_of(programs, id, Role::worker, start.run_id, start.instance, start.version, now, valid_until);
  bool own = programs.worker_command.empty();
  if (own) spec.lease_socket = socket_path(programs, Role::worker, start.instance);
  json::object document = document_of(programs, id, start.run_id, start.instance, spec);
  for (const auto& [name, value] : programs.worker_settings) {
    document[name] = value;
    spec.unset.push_back(setting_environment(std::string_view(name)));
  }
  document["stream_tenant"] = about.home.tenant.str();
  document["stream_site"] = about.home.site.str();
  document["stream_mode"] = json::write_value(start.settings.mode);
  document["max_fps"] = start.settings.max_fps;
  document["rtmp_output"] = about.for_rtmp;
  if (own) {
    spec.command = {programs.worker, "stream", "--config", "/dev/fd/3"};
  } else {
    std::string input = url_of(programs, stream::input_path(id)).reveal();
    std::string output = url_of(programs, stream::output_path(id)).reveal();
    document["input_url"] = input;
    document["output_url"] = output;
    for (const std::string& word : programs.worker_command)
      spec.command.push_back(replaced(word, {{"stream_id", id.str()},
                                             {"run_id", start.run_id},
                                             {"instance_id", start.instance},
                                             {"input_url", input},
                                             {"output_url", output}}));
    for (const auto& [name, value] : start.settings.preferences)
      if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos)
        spec.environment.emplace_back("WEIR_PREF_" + name, value);
  }
  spec.document = Secret(json::to_text(document));
  return spec;
}

KeptSpec forwarder_spec(const Programs& programs, const stream::StreamId& id, const stream::StartForwarder& start,
                        Instant now, Instant valid_until) {
  KeptSpec spec = spec_of(programs, id, Role::forwarder, start.run_id, start.instance, start.version, now, valid_until);
  spec.lease_socket = socket_path(programs, Role::forwarder, start.instance);
  json::object document = document_of(programs, id, start.run_id, start.instance, spec);
  document["egress_enabled"] = true;
  document["dest_rtmp_url"] = start.destination.reveal();
  spec.command = {programs.forwarder, "--config", "/dev/fd/3"};
  spec.document = Secret(json::to_text(document));
  return spec;
}

}  // namespace weir::orchestrator
