// libcuda's C ABI over the simulator: what works on memory, streams, events, modules and functions.
#include "cuda_driver.h"

using namespace simgpu;

SIMGPU_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, std::size_t bytes) {
  return hand_out<void*>(out, [&](int d, void** at) { return sim().allocate(d, bytes, at); });
}

SIMGPU_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  return in_context([&](int d) { return sim().free(d, pointer(address)); });
}

SIMGPU_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* out, std::size_t bytes, CUstream stream) {
  return hand_out<void*>(
      out, [&](int d, void** at) { return sim().allocate_async(d, bytes, handle(stream), at); });
}

SIMGPU_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return in_context([&](int d) { return sim().free_async(d, pointer(address), handle(stream)); });
}

SIMGPU_EXPORT CUresult cuMemHostAlloc(void** out, std::size_t bytes, unsigned /*flags*/) {
  return hand_out<void*>(out, [&](int, void** at) { return sim().host_allocate(bytes, at); });
}

SIMGPU_EXPORT CUresult cuMemFreeHost(void* address) {
  return in_context([&](int) { return sim().host_free(address); });
}

SIMGPU_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                                            CUstream stream) {
  return in_context(
      [&](int d) { return sim().copy_to_device(d, pointer(to), from, bytes, handle(stream)); });
}

SIMGPU_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes,
                                            CUstream stream) {
  return in_context(
      [&](int d) { return sim().copy_to_host(d, to, pointer(from), bytes, handle(stream)); });
}

SIMGPU_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                            CUstream stream) {
  return in_context([&](int d) {
    return sim().copy_on_device(d, pointer(to), pointer(from), bytes, handle(stream));
  });
}

SIMGPU_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count,
                                       CUstream stream) {
  return in_context(
      [&](int d) { return sim().fill(d, pointer(to), value, 1, count, handle(stream)); });
}

SIMGPU_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count,
                                        CUstream stream) {
  return in_context(
      [&](int d) { return sim().fill(d, pointer(to), value, 2, count, handle(stream)); });
}

SIMGPU_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count,
                                        CUstream stream) {
  return in_context(
      [&](int d) { return sim().fill(d, pointer(to), value, 4, count, handle(stream)); });
}

SIMGPU_EXPORT CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  return hand_out<Handle>(out, [&](int d, Handle* stream) {
    return flags > 1 ? sim().bad_call(Status::InvalidValue) : sim().create_stream(d, stream);
  });
}

SIMGPU_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  return in_context([&](int d) { return sim().destroy_stream(d, handle(stream)); });
}

SIMGPU_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  return in_context([&](int d) { return sim().synchronize_stream(d, handle(stream)); });
}

SIMGPU_EXPORT CUresult cuStreamQuery(CUstream stream) {
  return in_context([&](int d) { return sim().query_stream(d, handle(stream)); });
}

SIMGPU_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned /*flags*/) {
  return in_context([&](int d) { return sim().wait_event(d, handle(stream), handle(event)); });
}

SIMGPU_EXPORT CUresult cuEventCreate(CUevent* out, unsigned flags) {
  constexpr unsigned kDisableTiming = 2;
  return hand_out<Handle>(out, [&](int d, Handle* event) {
    return sim().create_event(d, (flags & kDisableTiming) == 0, event);
  });
}

SIMGPU_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  return in_context([&](int d) { return sim().destroy_event(d, handle(event)); });
}

SIMGPU_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  return in_context([&](int d) { return sim().record_event(d, handle(event), handle(stream)); });
}

SIMGPU_EXPORT CUresult cuEventQuery(CUevent event) {
  return in_context([&](int) { return sim().query_event(handle(event)); });
}

SIMGPU_EXPORT CUresult cuEventSynchronize(CUevent event) {
  return in_context([&](int) { return sim().synchronize_event(handle(event)); });
}

SIMGPU_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return in_context(
      [&](int) { return sim().elapsed_time(handle(start), handle(end), milliseconds); });
}

SIMGPU_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return in_context(
      [&](int) { return sim().elapsed_time(handle(start), handle(end), milliseconds); });
}

SIMGPU_EXPORT CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return hand_out<Handle>(out, [&](int d, Handle* m) { return sim().load_module(d, image, m); });
}

SIMGPU_EXPORT CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned /*count*/,
                                          int* /*options*/, void** /*values*/) {
  return hand_out<Handle>(out, [&](int d, Handle* m) { return sim().load_module(d, image, m); });
}

SIMGPU_EXPORT CUresult cuModuleUnload(CUmodule module) {
  return in_context([&](int d) { return sim().unload_module(d, handle(module)); });
}

SIMGPU_EXPORT CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  return hand_out<Handle>(out, [&](int d, Handle* function) {
    return sim().get_function(d, handle(module), name, function);
  });
}

SIMGPU_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes,
                                            CUmodule module, const char* name) {
  return in_context([&](int d) {
    void* at = nullptr;
    const Status status = sim().get_variable(d, handle(module), name, &at, bytes);
    if (status == Status::Ok && address != nullptr) *address = reinterpret_cast<CUdeviceptr>(at);
    return status;
  });
}

SIMGPU_EXPORT CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction function) {
  return in_context(
      [&](int) { return sim().function_attribute(handle(function), attribute, value); });
}

SIMGPU_EXPORT CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  return in_context(
      [&](int) { return sim().set_function_attribute(handle(function), attribute, value); });
}

SIMGPU_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned shared_bytes, CUstream stream,
                                      void** parameters, void** extra) {
  return in_context([&](int d) {
    return sim().launch(d, {.function = handle(function),
                            .grid = {grid_x, grid_y, grid_z},
                            .block = {block_x, block_y, block_z},
                            .shared_bytes = shared_bytes,
                            .stream = handle(stream),
                            .parameters = parameters,
                            .extra = extra});
  });
}

#if !defined(SIMGPU_CUDA11)
SIMGPU_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                        void** parameters, void** extra) {
  constexpr int kProgrammaticStreamSerialization = 6;
  return in_context([&](int d) {
    if (config == nullptr) return sim().bad_call(Status::InvalidValue);
    bool early = false;
    for (unsigned i = 0; i < config->attribute_count; ++i) {
      const CUlaunchAttribute& attribute = config->attributes[i];
      if (attribute.id != kProgrammaticStreamSerialization) {
        return sim().bad_call(Status::InvalidValue);
      }
      early = attribute.value.allowed != 0;
    }
    return sim().launch(d, {.function = handle(function),
                            .grid = {config->grid_x, config->grid_y, config->grid_z},
                            .block = {config->block_x, config->block_y, config->block_z},
                            .shared_bytes = config->shared_bytes,
                            .stream = handle(config->stream),
                            .parameters = parameters,
                            .extra = extra,
                            .early = early});
  });
}
#endif
