// TopicPattern: which routing keys a subscriber wants, as AMQP's topic exchanges say it.
//
// Words stand between dots: `*` is exactly one word, `#` any number of them, also none. Two dots in a row enclose an
// empty word, which counts; the empty key has no word at all. Constant after creation; shared freely.
#pragma once

#include "weir/base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weir::event {

class TopicPattern {
 public:
  // Fails on more than 255 bytes and on control characters.
  static Result<TopicPattern> create(std::string_view pattern);
  bool matches(std::string_view key) const;

 private:
  enum class Kind { word, one, any };
  struct Part {
    Kind kind;
    std::string word;
  };
  std::vector<Part> parts_;
};

}  // namespace weir::event
