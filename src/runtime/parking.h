// Copies that were left to themselves: kept until the device is done with them.
#pragma once

namespace tl {

class Context;

// Lets go of those that are done. Called whenever the device is used for copies, trimmed or
// synchronised.
void drain_parked(Context& context) noexcept;

}  // namespace tl
