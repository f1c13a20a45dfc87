// The exported side of control.h.
#include "control.h"

#include "export.h"
#include "simulator.h"

using simgpu::Simulator;

SIMGPU_EXPORT int simgpu_fail(const char* what, long nth) {
  return Simulator::get().plan_failure(what, nth) ? 0 : 1;
}

SIMGPU_EXPORT void simgpu_lose_device(int device) { Simulator::get().lose_device(device); }

SIMGPU_EXPORT void simgpu_compiled_for(int architecture) {
  Simulator::get().compiled_for(architecture);
}

SIMGPU_EXPORT void simgpu_reset() { Simulator::get().reset(); }

SIMGPU_EXPORT void simgpu_counters(SimCounters* out) { *out = Simulator::get().counters(); }

SIMGPU_EXPORT int simgpu_check() { return Simulator::get().check(); }

SIMGPU_EXPORT long simgpu_pending(int device) { return Simulator::get().pending(device); }
