// The last will of a runner (docs/lease-protocol.md): what its parent needs to give a dead manager's leases back.
//
// A Testament is a boot's right to release all its leases at once, without a token. It may be used only when nothing
// of that boot runs any more: the Household makes sure of it. A TestamentFile keeps it for the next parent, in case
// this one dies too; a WillOffice, the control plane, carries it out. Loop thread only.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"

#include <boost/asio/awaitable.hpp>

#include <optional>

namespace weir {

struct Testament {
  RunnerId runner;
  BootId boot;
  Secret will;
};

class TestamentFile {
 public:
  virtual ~TestamentFile() = default;
  // The testament that an earlier boot left here, where that boot is certain to be dead.
  virtual const std::optional<Testament>& left_behind() const = 0;
  // The testament is on the disk when this returns.
  virtual Status write(const Testament& testament) = 0;
  virtual Status clear() = 0;
};

class Household {
 public:
  virtual ~Household() = default;
  // Ends every process below this one, orphans among them; true when none of them runs any more. Blocks for seconds.
  virtual bool end_all() = 0;
};

enum class WillAnswer { carried_out, refused, none };

class WillOffice {
 public:
  virtual ~WillOffice() = default;
  // How many addresses there are to ask, one after the other.
  virtual int addresses() const = 0;
  // Asks once, at one address: at the next one where the last gave no good answer. `refused`: the control plane there
  // does not know the boot.
  virtual boost::asio::awaitable<WillAnswer> carry_out(Testament testament) = 0;
};

}  // namespace weir
