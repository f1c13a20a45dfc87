// Marks the functions that make up an ABI. Everything else in these libraries is hidden, so that
// several of them can live in one process.
#pragma once

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))
