// Font: letters of 5 by 7 points, drawn for this program, for what is written into pictures.
//
// It knows the printable characters of ASCII; everything else is shown as an empty box. Constant; any thread.
#pragma once

#include <string_view>

namespace weir::ffmpeg::font {

inline constexpr int kWidth = 5, kHeight = 7;
inline constexpr int kAdvance = 6;  // from one letter to the next

// Whether the letter has a point there; x from the left, y from the top.
bool point(char letter, int x, int y);
// How many letters a UTF-8 text shows: one for each of its characters.
int length(std::string_view text);
// The letter for the character that begins at `at`, which moves behind it.
char next(std::string_view text, size_t& at);

}  // namespace weir::ffmpeg::font
