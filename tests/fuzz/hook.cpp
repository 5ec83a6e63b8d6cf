// What strangers can say about a published stream: the body of a hook, the query string in it, and an operator's wishes.
// Whatever it is, the orchestrator answers with a stream id that is safe in paths, or with a sentence that repeats no
// secret; and what it accepts it reads the same way again.
#include "target.hpp"

#include "weir/stream/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace weir::fuzz {
namespace {

constexpr std::string_view kCanary = "xyzzy";  // in every secret, and in nothing else

const std::vector<std::string> kBodies = {
    R"({"path":"live/abc/in","query":"lang=es","sourceType":"rtmp","sourceId":"1"})",
    R"({"path":"live/a_B-9/in","query":"lang%3Des%26pass%3Dxyzzy","sourceType":"rtspSession","sourceId":"6f-1"})",
    R"({"path":"live/abc/in"})",
    R"({"path":"live/abc/out","query":null})",
    R"({"path":"live//in","sourceId":""})",
    R"({"path":"live/../in"})",
    R"({"path":"live/a%2Fb/in","query":7})",
    R"([])",
    "",
};
const std::vector<std::string> kQueries = {
    "user=u&pass=xyzzy&mode=passthrough", "forward=true&destination=rtmp%3A%2F%2Fh%2Fapp%2Fxyzzy-key", "lang%3Des%26x%3D1",
    "max_fps=1e400", "mode=xyzzy", "&&==&", "%", "%zz=%00", "a=1&a=2", ""};
const std::vector<std::string> kWishes = {
    R"({"forward":true,"destination":"rtmp://h/app/xyzzy-key","mode":"annotate","max_fps":5,"preferences":{"lang":"es"}})",
    R"({"destination":"xyzzy","forward":1})", R"({"mode":"xyzzy"})", R"({"max_fps":-1})", R"({"preferences":{"a":7}})",
    R"({})", "null"};
const Words kWords = {"\"", "{", "}", "[", "]", ",", ":", "\\u0000", "\\", "/", "live/", "/in", "/out", "..", "%", "%25",
                      "%2F", "&", "=", "+", "true", "null", "1e999", "-1", "path", "query", "destination", "xyzzy", "\xC3",
                      "\xED\xA0\x80", " "};

std::string drawn(Mutator& mutate, const std::vector<std::string>& all) {
  std::string text = mutate.any(all);
  return mutate.one_in(3) ? text : mutate.bytes(text, kWords, mutate.any(all));
}

class HookTarget final : public Target {
 public:
  Input draw(Mutator& mutate) override { return {drawn(mutate, kBodies), drawn(mutate, kQueries), drawn(mutate, kWishes)}; }

  void run(const Input& input) override {
    auto hook = stream::read_hook_text(input.at(0));
    ++(hook ? accepted_ : refused_);
    auto document = json::parse_text(input.at(0));
    if (hook) safe(*hook);
    else if (!document || !names_canary(*document)) silent(hook.error().message);
    queried(input.at(1));
    if (auto asked = json::parse_text(input.at(2))) wished(*asked);
  }

  std::string finish() override {
    return fmt::format("{} hooks accepted, {} refused; {} wishes accepted, {} refused", accepted_, refused_, wishes_,
                       refused_wishes_);
  }
  bool conclusive() const override { return accepted_ > 0 && refused_ > 0 && wishes_ > 0 && refused_wishes_ > 0; }

 private:
  // A refusal may name the field that is wrong.
  static bool names_canary(const json::value& v) {
    if (v.is_array()) return std::ranges::any_of(v.get_array(), names_canary);
    if (!v.is_object()) return false;
    return std::ranges::any_of(v.get_object(), [](const auto& member) {
      return std::string_view(member.key()).find(kCanary) != std::string_view::npos || names_canary(member.value());
    });
  }
  static void silent(std::string_view sentence) {
    check(!sentence.empty() && sentence.find(kCanary) == std::string_view::npos,
          fmt::format("a refusal repeats a secret: {}", sentence));
  }
  static void safe(const stream::Hook& hook) {
    const std::string& id = hook.stream.str();
    bool plain = !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '-';
    });
    check(plain, fmt::format("accepted as the stream {:?}", id));
    check(stream::stream_of_input(stream::input_path(hook.stream)) == hook.stream, "its path is another stream's");
    (void)stream::wishes_of(stream::read_query(hook.source.query), true);
  }
  static void queried(const std::string& text) {
    stream::Query query = stream::read_query(Secret(text));
    // A problem may name what is wrong.
    bool named = std::ranges::any_of(query, [](const auto& each) { return each.first.find(kCanary) != std::string::npos; });
    for (bool allowed : {false, true}) {
      stream::Wishes wishes = stream::wishes_of(query, allowed);
      check(allowed || !wishes.destination, "a publisher named a destination that it may not");
      check(named || wishes.problem.find(kCanary) == std::string::npos, "a problem repeats a secret: " + wishes.problem);
      stream::Settings merged = stream::merge({}, {}, wishes);
      check(!merged.forward || !merged.destination.empty(), "forwards to nowhere");
    }
  }
  void wished(const json::value& document) {
    auto wishes = stream::read_wishes(document);
    ++(wishes ? wishes_ : refused_wishes_);
    if (!wishes) return names_canary(document) ? void() : silent(wishes.error().message);
    auto again = stream::read_wishes(stream::write_wishes(*wishes, stream::Credentials::shown));
    check(again && *again == *wishes, "what was accepted reads differently the second time");
    // Host and application are no secret, and neither are preferences.
    if (!wishes->destination || wishes->destination->reveal() != "rtmp://h/app/xyzzy-key") return;
    stream::Wishes only{.destination = wishes->destination};
    std::string shown = json::to_text(stream::write_wishes(only, stream::Credentials::redacted));
    check(shown.find(kCanary) == std::string::npos, "shown: " + shown);
  }

  std::uint64_t accepted_ = 0, refused_ = 0, wishes_ = 0, refused_wishes_ = 0;
};

}  // namespace

std::unique_ptr<Target> make_hook_target() { return std::make_unique<HookTarget>(); }

}  // namespace weir::fuzz
