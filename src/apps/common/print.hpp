// What commands print: aligned tables for people, JSON for programs.
//
// Texts come from the store and may hold anything; what a terminal would obey is replaced. Main thread only, but for
// what is offered.
#pragma once

#include "weir/base/json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::apps {

class Table {
 public:
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // Columns two blanks apart, as wide as their widest cell; the last one is not padded.
  std::string text() const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Without control characters; as many columns as it has characters.
std::string harmless(std::string_view text);
size_t columns_of(std::string_view text);

// A field for a table cell: "-" where it is absent or null, yes and no, numbers without a needless fraction.
std::string cell(const json::value& object, std::string_view field);
// "name  value" lines of every field, nested ones as JSON.
std::string field_lines(const json::object& object);

// To stdout, flushed, and waiting for its reader: nothing is lost, or `take_print_failure` knows. A stdout that was
// closed from the start is not an error.
void print(std::string_view text);
void print_line(std::string_view text);
void print_json(const json::value& v);
// Why stdout did not take a text since the last call, if so; the reason is "closed_pipe" where the reader has left.
std::optional<Error> take_print_failure();
// Whether stdout took everything so far and still has a reader.
bool printing_makes_sense();
// To stdout without ever waiting, for a program that has other work; see LiveOutput. Any thread. False: dropped.
bool offer(std::string_view text, bool counted = true);
void offer_line(std::string_view text);
// To stderr: "weir: …".
void complain(std::string_view message);
// Whether the terminal that this process was started in has been closed: a SIGHUP then means "end", not "read again".
bool terminal_gone();

}  // namespace weir::apps
