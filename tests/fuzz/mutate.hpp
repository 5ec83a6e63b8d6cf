// Mutator: right inputs made wrong, in the ways in which parsers go wrong. One seed decides everything.
//
// It knows bytes only; a target that knows the structure of its input picks the piece to hand in. One thread only.
#pragma once

#include "../sim/rng.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::fuzz {

using Words = std::vector<std::string_view>;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  size_t below(size_t limit) { return static_cast<size_t>(random_.next() % limit); }
  bool one_in(size_t n) { return below(n) == 0; }
  template <class List>
  auto& any(List& of) {
    return of[below(of.size())];
  }

  // A few changes; `words` are what the format's reader looks for, `other` is something else of the same format.
  std::string bytes(std::string text, const Words& words, std::string_view other = {}) {
    for (size_t changes = size_t{1} << below(4); changes > 0; --changes) change(text, words, other);
    return text;
  }

  // Drops, doubles and swaps whole elements.
  template <class T>
  void shuffle(std::vector<T>& list) {
    if (list.empty()) return;
    size_t at = below(list.size());
    auto place = list.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(3)) {
      case 0: list.erase(place); break;
      case 1: list.insert(place, T(list[below(list.size())])); break;
      default: std::swap(list[at], list[below(list.size())]); break;
    }
  }

 private:
  void change(std::string& text, const Words& words, std::string_view other) {
    if (text.empty()) text = "\n";
    size_t at = below(text.size()), length = 1 + below(std::min<size_t>(text.size() - at, one_in(4) ? 512 : 12));
    switch (below(10)) {
      case 0: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
      case 1: text[at] = static_cast<char>(below(256)); break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(at, std::string(text, at, length)); break;
      case 4: binary_number(text, at); break;
      case 5: decimal_number(text, at); break;
      case 6:
        if (!other.empty()) text.replace(at, length, other.substr(below(other.size()), length));
        break;
      case 7:
        if (one_in(4)) text.resize(at);
        break;
      default:
        if (!words.empty()) text.replace(at, one_in(2) ? 0 : length, any(words));
        break;
    }
  }
  // Where sizes overflow and signs turn, in one to four bytes, most significant first.
  void binary_number(std::string& text, size_t at) {
    static constexpr std::uint32_t kEdges[] = {0,      1,      2,      0x7F,       0x80,      0xFF,
                                               0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF};
    std::uint32_t number = kEdges[below(std::size(kEdges))] + static_cast<std::uint32_t>(one_in(4) ? below(5) - 2 : 0);
    size_t width = std::min(text.size() - at, size_t{1} << below(3));
    for (size_t i = 0; i < width; ++i) text[at + i] = static_cast<char>(number >> (8 * (width - 1 - i)));
  }
  // The next number that stands in the text becomes another.
  void decimal_number(std::string& text, size_t at) {
    static constexpr std::string_view kEdges[] = {"0",
                                                  "-1",
                                                  "1",
                                                  "255",
                                                  "256",
                                                  "32768",
                                                  "65535",
                                                  "65536",
                                                  "2147483647",
                                                  "2147483648",
                                                  "-2147483648",
                                                  "4294967295",
                                                  "9007199254740993",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "18446744073709551615",
                                                  "99999999999999999999",
                                                  "1e308",
                                                  "1e-320",
                                                  "0.1",
                                                  "00",
                                                  "0x10"};
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) == 0) ++at;
    size_t end = at;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (at < end) text.replace(at, end - at, kEdges[below(std::size(kEdges))]);
  }

  sim::Rng random_;
};

}  // namespace weir::fuzz
