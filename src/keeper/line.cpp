#include "line.hpp"

namespace weir::keeper {

namespace {

// The rest of a line; each function takes what it names from the front and says whether it was there.
class Rest {
 public:
  explicit Rest(std::string_view text) : text_(text) {}
  bool sign(char wanted) {
    space();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool text(std::string_view& out) {
    if (!sign('"')) return false;
    size_t end = text_.find_first_of("\"\\");
    if (end == text_.npos || text_[end] == '\\') return false;
    out = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool number(std::int64_t& out) {
    space();
    size_t end = std::min(text_.find_first_not_of("0123456789"), text_.size());
    auto read = read_number(text_.substr(0, end));
    if (!read) return false;
    out = *read;
    text_.remove_prefix(end);
    return true;
  }
  bool end() {
    space();
    return text_.empty();
  }

 private:
  void space() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r"), text_.size())); }
  std::string_view text_;
};

struct Fields {
  std::optional<std::int64_t> version, valid_until_us;
  std::string_view order;
  bool none = true;
};

bool read_field(Rest& rest, Fields& fields) {
  std::string_view name, text;
  std::int64_t number = 0;
  if (!rest.text(name) || !rest.sign(':')) return false;
  fields.none = false;
  if (rest.text(text)) {
    if (name == "order") fields.order = text;
    return name != "version" && name != "valid_until_us";
  }
  if (!rest.number(number)) return false;
  if (name == "version") fields.version = number;
  if (name == "valid_until_us") fields.valid_until_us = number;
  return name != "order";
}

bool read_fields(Rest rest, Fields& fields) {
  if (!rest.sign('{')) return false;
  if (rest.sign('}')) return rest.end();
  do {
    if (!read_field(rest, fields)) return false;
  } while (rest.sign(','));
  return rest.sign('}') && rest.end();
}

}  // namespace

Ask read_ask(std::string_view line) {
  Fields fields;
  if (!read_fields(Rest(line), fields)) return {};
  if (fields.none) return {.what = Ask::What::state};
  if (fields.order == "stop") return {.what = Ask::What::stop};
  if (fields.order == "kill") return {.what = Ask::What::kill};
  if (!fields.order.empty() || !fields.version || !fields.valid_until_us) return {};
  return {.what = Ask::What::extend, .version = *fields.version, .valid_until = Micros(*fields.valid_until_us)};
}

}  // namespace weir::keeper
