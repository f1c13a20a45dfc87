// A chat in thirty lines: example_chat model.gguf, then a line for each message.
#include <iostream>
#include <string>
#include <string_view>

#include "tl/tl.h"

int main(int argc, char** argv) try {
  if (argc != 2) throw tl::Error(tl::ErrorKind::BadArgument, "chat", "one model, please");
  const tl::Device device = tl::Device::best_available();
  const tl::GgufFile file = tl::GgufFile::open(argv[1]);
  const tl::Decoder decoder(file, tl::ModelWeights::load(file, device));
  tl::Engine engine(decoder, tl::Tokenizer::from_gguf(file));

  const auto own = tl::ChatTemplate::from_gguf(file);  // most models bring one
  tl::Chat chat(engine, own ? *own : tl::ChatTemplate::builtin("chatml"), {.max_tokens = 256});
  chat.set_system("You answer in a sentence or two.");
  const auto show = [](std::string_view text) {
    std::cout << text << std::flush;
    return true;  // false would end the answer here
  };

  for (std::string line; std::cout << "> " && std::getline(std::cin, line);) {
    const tl::GenerationResult answer = chat.say(line, show);
    std::cout << "\n[" << answer.tokens.size() << " tokens, " << answer.statistics.reused_tokens
              << " of the prompt's " << answer.statistics.prompt_tokens << " known before]\n";
  }
} catch (const tl::Error& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
