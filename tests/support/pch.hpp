// What nearly every test reads. Not a substitute for includes: each file still names what it uses.
#pragma once

#include "../../src/asio/pch.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <gtest/gtest.h>
