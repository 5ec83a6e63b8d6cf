// With BOOST_ASIO_SEPARATE_COMPILATION the library's functions are compiled here and nowhere else.
#include <boost/asio/impl/src.hpp>
