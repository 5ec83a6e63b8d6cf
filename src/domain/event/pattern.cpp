#include "weir/event/pattern.hpp"

#include "weir/event/routing.hpp"

#include <algorithm>

namespace weir::event {

namespace {
// The words of a key, one after the other; a copy of the position goes back to it.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text), left_(!text.empty()) {}
  bool left() const { return left_; }
  std::string_view take() {
    size_t dot = rest_.find('.');
    std::string_view word = rest_.substr(0, dot);
    left_ = dot != std::string_view::npos;
    rest_ = left_ ? rest_.substr(dot + 1) : std::string_view();
    return word;
  }

 private:
  std::string_view rest_;
  bool left_;
};
}  // namespace

Result<TopicPattern> TopicPattern::create(std::string_view pattern) {
  auto refuse = [](std::string what) {
    return Error{Errc::invalid, "bad_field", "pattern " + what, {{"field", "pattern"}}};
  };
  if (pattern.size() > kKeyBytesMax) return refuse("must have at most 255 bytes");
  if (std::ranges::any_of(pattern, [](unsigned char c) { return c < 0x20 || c == 0x7F; }))
    return refuse("must not contain control characters");
  TopicPattern out;
  for (Words words(pattern); words.left();) {
    std::string_view word = words.take();
    Kind kind = word == "#" ? Kind::any : word == "*" ? Kind::one : Kind::word;
    if (kind == Kind::any && !out.parts_.empty() && out.parts_.back().kind == Kind::any) continue;
    out.parts_.push_back({kind, kind == Kind::word ? std::string(word) : std::string()});
  }
  return out;
}

// Takes `#` for nothing at first; where that fails later, the last `#` takes one word more. An earlier `#` never
// needs to: what it can take, the later one can take too.
bool TopicPattern::matches(std::string_view key) const {
  Words words(key), back_to(key);
  size_t part = 0, after_any = 0;
  bool can_go_back = false;
  for (;;) {
    if (part < parts_.size() && parts_[part].kind == Kind::any) {
      after_any = ++part;
      back_to = words;
      can_go_back = true;
    } else if (!words.left()) {
      return part == parts_.size();
    } else if (part < parts_.size() && (parts_[part].kind == Kind::one || Words(words).take() == parts_[part].word)) {
      words.take();
      ++part;
    } else if (can_go_back && back_to.left()) {
      back_to.take();
      words = back_to;
      part = after_any;
    } else {
      return false;
    }
  }
}

}  // namespace weir::event
