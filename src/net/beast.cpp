// With BOOST_BEAST_SEPARATE_COMPILATION the library's functions are compiled here and nowhere else.
#include <boost/beast/src.hpp>
