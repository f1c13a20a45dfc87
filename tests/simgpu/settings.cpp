// Reading the SIMGPU_* variables.
#include "settings.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace simgpu {
namespace {

struct Choice {
  const char* text;
  unsigned value;
};

void complain(const char* name, const char* value) {
  std::fprintf(stderr, "simgpu: %s=%s is not understood; using the default\n", name, value);
}

template <class T>
void read_choice(const char* name, std::initializer_list<Choice> choices, T& out) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return;
  for (const Choice& choice : choices) {
    if (std::strcmp(value, choice.text) == 0) {
      out = static_cast<T>(choice.value);
      return;
    }
  }
  complain(name, value);
}

template <class T>
void read_number(const char* name, unsigned long long limit, T& out) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(value, &end, 10);
  if (*end != '\0' || *value == '-' || number > limit) return complain(name, value);
  out = static_cast<T>(number);
}

}  // namespace

Settings read_settings() {
  Settings settings;
  read_number("SIMGPU_DEVICES", 64, settings.devices);
  read_number("SIMGPU_MEMORY", 1ull << 46, settings.memory);
  read_choice("SIMGPU_WARP", {{"32", 32}, {"64", 64}}, settings.warp);
  read_choice("SIMGPU_MODE", {{"lazy", 0}, {"threads", 1}}, settings.threads);
  read_choice("SIMGPU_PROTECT", {{"0", 0}, {"1", 1}}, settings.protect);
  read_choice("SIMGPU_ORDER", {{"forward", 0}, {"reverse", 1}}, settings.reverse);
  read_choice("SIMGPU_ROCM", {{"5", 5}, {"6", 6}, {"7", 7}}, settings.rocm);
  if (settings.threads) settings.protect = false;  // needs a single executing thread
  return settings;
}

}  // namespace simgpu
