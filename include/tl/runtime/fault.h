// Where a kernel that meets a bad index says so, instead of ending the context.
//
// Two words of pinned host memory that the device can write, one pair per GPU. A kernel writes them
// (report_bad_index in src/kernels/gpu_warp.h) and goes on as if the index were the sentinel; the
// next wait for that GPU, on whatever stream, throws InvalidIndex and clears them. Each word is
// written whole, so a message is never torn; of several bad indices any one is reported.
//
// Both sides include this file. It includes nothing and is embedded as source for the run-time
// compilers.
#pragma once

namespace tl {

struct Fault {
  // 0: nothing is wrong. Else the op's tag in the top 8 bits and the index, two's complement, in
  // the others.
  unsigned long long what;
  long long size;  // the index must be below this
};

}  // namespace tl
