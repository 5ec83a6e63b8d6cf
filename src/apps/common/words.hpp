// Words on a command line: taken apart, read as numbers, and compared with the words that would have been right; and
// words of an answer.
// Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::apps {

// The pieces between any of `separators`; empty ones are left out.
std::vector<std::string> split_words(std::string_view text, std::string_view separators);
// The finite number that the whole text is, or none.
std::optional<double> number_in(std::string_view text);
// Those of `known` that a person may have meant by `word`, the nearest first and three at most: one of the same
// meaning (`delete` for `remove`), one that begins alike, or one with a letter or two mistyped.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known);
// "1 camera", "3 cameras".
std::string counted(int n, std::string_view what);

}  // namespace weir::apps
