#include "weir/stream/hook.hpp"

namespace weir::stream {

namespace {

struct HookText {
  std::string path, type, id;
  Secret query;
};
template <class V>
void fields(V& v, HookText& h) {
  auto bounded = [](const Secret& query) -> std::string {
    return query.reveal().size() <= kQueryMax ? "" : fmt::format("must have at most {} characters", kQueryMax);
  };
  v.required("path", h.path, json::length(1, kPathMax));
  v.optional("query", h.query, bounded);
  v.optional("sourceType", h.type, json::length(0, kSourceMax));
  v.optional("sourceId", h.id, json::length(0, kSourceMax));
  if constexpr (V::reading) {
    bool known = h.path.empty() || h.path.size() > kPathMax || stream_of_input(h.path);
    v.rule("path", known ? "" : "must be live/<stream id>/in, the id of 1 to 64 letters, digits, '_' and '-'");
  }
}

std::string form_decode(std::string_view text) {
  std::string spaced(text);
  for (char& c : spaced)
    if (c == '+') c = ' ';
  return percent_decode(spaced);
}

// A query that was percent-encoded as a whole has lost its own '=' and '&'.
bool encoded_whole(std::string_view query) {
  if (query.find_first_of("=&") != std::string_view::npos) return false;
  for (std::string_view mark : {"%3D", "%3d", "%26"})
    if (query.find(mark) != std::string_view::npos) return true;
  return false;
}

constexpr size_t kNamesMax = 64;

}  // namespace

Result<Hook> read_hook(const json::value& body) {
  TRY(text, json::read<HookText>(body));
  auto stream = stream_of_input(text.path);
  WEIR_ASSERT(stream.has_value());
  return Hook{*stream, {std::move(text.type), std::move(text.id), std::move(text.query)}};
}

Result<Hook> read_hook_text(std::string_view body) {
  TRY(parsed, json::parse_text(body));
  return read_hook(parsed);
}

Query read_query(const Secret& query) {
  std::string text = query.reveal();
  if (text.starts_with('?')) text.erase(0, 1);
  if (encoded_whole(text)) text = form_decode(text);
  Query out;
  for (std::string_view rest = text; !rest.empty() && out.size() < kNamesMax;) {
    size_t end = rest.find('&');
    std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    size_t eq = pair.find('=');
    std::string name = form_decode(pair.substr(0, eq));
    if (name.empty()) continue;
    out.try_emplace(std::move(name),
                    Secret(eq == std::string_view::npos ? std::string() : form_decode(pair.substr(eq + 1))));
  }
  return out;
}

}  // namespace weir::stream
