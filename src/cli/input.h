// What people and pipes give to commands: text, and lists of token ids.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tl/model/tokenizer.h"

namespace tl::cli {

// All of standard input. `where` is the command, for messages.
std::string read_input(std::string_view where);

// Throws BadArgument with the place of the first byte that is not UTF-8.
void expect_utf8(std::string_view where, std::string_view text);

// Numbers with anything between them that a list may have: spaces, commas, brackets.
std::vector<TokenId> parse_token_ids(std::string_view where, std::string_view text);

// On one line and in quotes: what a reader could not see is escaped, bytes that are no text too.
std::string in_quotes(std::string_view text);

// Writes to standard output at once; throws when that cannot be done.
void write_output(std::string_view text);

}  // namespace tl::cli
