// The build passes TL_VERSION from the project's one version number, in the top CMakeLists.txt.
#include "tl/base/version.h"

namespace tl {

std::string_view version() noexcept { return TL_VERSION; }

}  // namespace tl
