// libamdhip64's C ABI over the simulator: what works on memory, streams, events, modules and
// functions.
#include "hip_driver.h"

using namespace simgpu;

SIMGPU_EXPORT hipError_t hipDeviceSynchronize() {
  return on_device([](int d) { return sim().synchronize_device(d); });
}

SIMGPU_EXPORT hipError_t hipMemGetInfo(std::size_t* free, std::size_t* total) {
  return on_device([&](int d) { return sim().memory_info(d, free, total); });
}

// Unlike CUDA, HIP answers a request for nothing with a null pointer and success, and takes that
// back.
SIMGPU_EXPORT hipError_t hipMalloc(hipDeviceptr_t* out, std::size_t bytes) {
  return hand_out<void*>(out, [&](int d, void** at) {
    return bytes == 0 ? Status::Ok : sim().allocate(d, bytes, at);
  });
}

SIMGPU_EXPORT hipError_t hipFree(hipDeviceptr_t address) {
  return on_device([&](int d) { return address == nullptr ? Status::Ok : sim().free(d, address); });
}

SIMGPU_EXPORT hipError_t hipMallocAsync(hipDeviceptr_t* out, std::size_t bytes,
                                        hipStream_t stream) {
  return hand_out<void*>(
      out, [&](int d, void** at) { return sim().allocate_async(d, bytes, handle(stream), at); });
}

SIMGPU_EXPORT hipError_t hipFreeAsync(hipDeviceptr_t address, hipStream_t stream) {
  return on_device([&](int d) { return sim().free_async(d, address, handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipHostMalloc(void** out, std::size_t bytes, unsigned /*flags*/) {
  return hand_out<void*>(out, [&](int, void** at) { return sim().host_allocate(bytes, at); });
}

SIMGPU_EXPORT hipError_t hipHostFree(void* address) {
  return on_device([&](int) { return address == nullptr ? Status::Ok : sim().host_free(address); });
}

SIMGPU_EXPORT hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void* from, std::size_t bytes,
                                            hipStream_t stream) {
  return on_device([&](int d) { return sim().copy_to_device(d, to, from, bytes, handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, std::size_t bytes,
                                            hipStream_t stream) {
  return on_device([&](int d) { return sim().copy_to_host(d, to, from, bytes, handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from,
                                            std::size_t bytes, hipStream_t stream) {
  return on_device([&](int d) { return sim().copy_on_device(d, to, from, bytes, handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from,
                                            int from_device, std::size_t bytes,
                                            hipStream_t stream) {
  return on_device([&](int d) {
    if (!sim().has_device(to_device) || !sim().has_device(from_device)) {
      return sim().bad_call(Status::InvalidDevice);
    }
    return sim().copy_peer(d, to, to_device, from, from_device, bytes, handle(stream));
  });
}

SIMGPU_EXPORT hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, std::size_t count,
                                          hipStream_t stream) {
  return on_device([&](int d) { return sim().fill(d, to, value, 1, count, handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value,
                                           std::size_t count, hipStream_t stream) {
  return on_device([&](int d) { return sim().fill(d, to, value, 2, count, handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipMemsetD32Async(hipDeviceptr_t to, unsigned value, std::size_t count,
                                           hipStream_t stream) {
  return on_device([&](int d) { return sim().fill(d, to, value, 4, count, handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t* out, unsigned flags) {
  return hand_out<Handle>(out, [&](int d, Handle* stream) {
    return flags > 1 ? sim().bad_call(Status::InvalidValue) : sim().create_stream(d, stream);
  });
}

SIMGPU_EXPORT hipError_t hipStreamDestroy(hipStream_t stream) {
  return on_device([&](int d) { return sim().destroy_stream(d, handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
  return on_device([&](int d) { return sim().synchronize_stream(d, handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipStreamQuery(hipStream_t stream) {
  return on_device([&](int d) { return sim().query_stream(d, handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event,
                                            unsigned /*flags*/) {
  return on_device([&](int d) { return sim().wait_event(d, handle(stream), handle(event)); });
}

SIMGPU_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* out, unsigned flags) {
  constexpr unsigned kDisableTiming = 2;
  return hand_out<Handle>(out, [&](int d, Handle* event) {
    return sim().create_event(d, (flags & kDisableTiming) == 0, event);
  });
}

SIMGPU_EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  return on_device([&](int d) { return sim().destroy_event(d, handle(event)); });
}

SIMGPU_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return on_device([&](int d) { return sim().record_event(d, handle(event), handle(stream)); });
}

SIMGPU_EXPORT hipError_t hipEventQuery(hipEvent_t event) {
  return on_device([&](int) { return sim().query_event(handle(event)); });
}

SIMGPU_EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
  return on_device([&](int) { return sim().synchronize_event(handle(event)); });
}

SIMGPU_EXPORT hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start,
                                             hipEvent_t end) {
  return on_device(
      [&](int) { return sim().elapsed_time(handle(start), handle(end), milliseconds); });
}

SIMGPU_EXPORT hipError_t hipModuleLoadData(hipModule_t* out, const void* image) {
  return hand_out<Handle>(out, [&](int d, Handle* m) { return sim().load_module(d, image, m); });
}

SIMGPU_EXPORT hipError_t hipModuleLoadDataEx(hipModule_t* out, const void* image,
                                             unsigned /*count*/, int* /*options*/,
                                             void** /*values*/) {
  return hand_out<Handle>(out, [&](int d, Handle* m) { return sim().load_module(d, image, m); });
}

SIMGPU_EXPORT hipError_t hipModuleUnload(hipModule_t module) {
  return on_device([&](int d) { return sim().unload_module(d, handle(module)); });
}

SIMGPU_EXPORT hipError_t hipModuleGetFunction(hipFunction_t* out, hipModule_t module,
                                              const char* name) {
  return hand_out<Handle>(out, [&](int d, Handle* function) {
    return sim().get_function(d, handle(module), name, function);
  });
}

SIMGPU_EXPORT hipError_t hipModuleGetGlobal(hipDeviceptr_t* address, std::size_t* bytes,
                                            hipModule_t module, const char* name) {
  return on_device(
      [&](int d) { return sim().get_variable(d, handle(module), name, address, bytes); });
}

SIMGPU_EXPORT hipError_t hipFuncGetAttribute(int* value, int attribute, hipFunction_t function) {
  return on_device(
      [&](int) { return sim().function_attribute(handle(function), attribute, value); });
}

SIMGPU_EXPORT hipError_t hipFuncSetAttribute(const void* function, int attribute, int value) {
  return on_device(
      [&](int) { return sim().set_function_attribute(handle(function), attribute, value); });
}

SIMGPU_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x,
                                               unsigned grid_y, unsigned grid_z, unsigned block_x,
                                               unsigned block_y, unsigned block_z,
                                               unsigned shared_bytes, hipStream_t stream,
                                               void** parameters, void** extra) {
  return on_device([&](int d) {
    return sim().launch(d, {.function = handle(function),
                            .grid = {grid_x, grid_y, grid_z},
                            .block = {block_x, block_y, block_z},
                            .shared_bytes = shared_bytes,
                            .stream = handle(stream),
                            .parameters = parameters,
                            .extra = extra});
  });
}
