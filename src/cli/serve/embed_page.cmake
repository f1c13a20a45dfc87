# Writes a C++ source that has a file's bytes:  cmake -D FROM=page.html -D TO=page.cpp -P embed_page.cmake
file(READ ${FROM} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
string(REGEX REPLACE "((....... ?){24})" "\\1\n" bytes "${bytes}")
file(WRITE ${TO} "#include \"cli/serve/page.h\"

namespace tl::cli::serve {

namespace {
constexpr char kPage[] = {
${bytes}};
}  // namespace

std::string page_html() { return {kPage, sizeof kPage}; }

}  // namespace tl::cli::serve
")
