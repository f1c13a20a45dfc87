// The page at `/`: page.html, which the build puts into the program.
#pragma once

#include <string>

namespace tl::cli::serve {

std::string page_html();

}  // namespace tl::cli::serve
