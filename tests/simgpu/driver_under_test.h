// One face for both ABIs, so that each claim about simgpu is tested through CUDA's functions and
// through HIP's.
//
// Handles and device addresses are all void* here; on the ABIs in question a pointer, a handle and
// a 64-bit address are passed alike.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "control.h"

namespace simgpu_test {

enum Result : int {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinary = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchFailed = 719,
};

struct Driver {
  explicit Driver(const std::string& which);  // cuda, hip or hip5
  static Driver& named(const std::string& which);

  bool cuda;
  void* library;
  simgpu::Control control;

  int (*mem_info)(std::size_t* free, std::size_t* total);
  int (*alloc)(void** out, std::size_t bytes);
  int (*free)(void* address);
  int (*alloc_async)(void** out, std::size_t bytes, void* stream);
  int (*free_async)(void* address, void* stream);
  int (*host_alloc)(void** out, std::size_t bytes, unsigned flags);
  int (*host_free)(void* address);
  int (*htod)(void* to, const void* from, std::size_t bytes, void* stream);
  int (*dtoh)(void* to, void* from, std::size_t bytes, void* stream);
  int (*dtod)(void* to, void* from, std::size_t bytes, void* stream);
  int (*fill8)(void* to, unsigned char value, std::size_t count, void* stream);
  int (*fill16)(void* to, unsigned short value, std::size_t count, void* stream);
  int (*fill32)(void* to, unsigned value, std::size_t count, void* stream);
  int (*stream_create)(void** out, unsigned flags);
  int (*stream_destroy)(void* stream);
  int (*stream_sync)(void* stream);
  int (*stream_query)(void* stream);
  int (*stream_wait)(void* stream, void* event, unsigned flags);
  int (*event_create)(void** out, unsigned flags);
  int (*event_destroy)(void* event);
  int (*event_record)(void* event, void* stream);
  int (*event_query)(void* event);
  int (*event_sync)(void* event);
  int (*event_elapsed)(float* milliseconds, void* start, void* end);
  int (*module_load)(void** out, const void* image);
  int (*module_unload)(void* module);
  int (*module_function)(void** out, void* module, const char* name);
  int (*module_global)(void** address, std::size_t* bytes, void* module, const char* name);
  int (*function_get)(int* value, int attribute, void* function);
  int (*function_set)(void* function, int attribute, int value);
  int (*launch)(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                unsigned bz, unsigned shared, void* stream, void** parameters, void** extra);
  int (*device_sync)();

  int use(int device);  // makes it current for the calling thread
  int peer(void* to, int to_device, void* from, int from_device, std::size_t bytes, void* stream);
  std::uintptr_t extra_end() const { return cuda ? 0 : 3; }

  template <class F>
  F find(const char* name) const {
    return reinterpret_cast<F>(dlsym(library, name));
  }

 private:
  std::vector<void*> contexts_;  // CUDA's primary contexts, by device
};

bool lazy_mode();
unsigned warp_width();
std::string read_file(const std::string& path);
std::string kernel_image(unsigned warp);

// A test on one ABI. Ends by checking that nothing was misused, damaged or left behind.
class OnSimGpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override;
  void TearDown() override;

  Driver& driver() { return Driver::named(GetParam()); }
  const simgpu::Control& control() { return driver().control; }

  void* new_stream();
  void* new_event();
  void* device_memory(std::size_t bytes);
  template <class T>
  void* upload(const std::vector<T>& values) {
    void* address = device_memory(values.size() * sizeof(T));
    EXPECT_EQ(driver().htod(address, values.data(), values.size() * sizeof(T), nullptr), kOk);
    EXPECT_EQ(driver().stream_sync(nullptr), kOk);
    return address;
  }
  // Pageable memory, so the call itself waits for the stream.
  template <class T>
  std::vector<T> download(void* address, std::size_t count, void* stream = nullptr) {
    std::vector<T> values(count);
    EXPECT_EQ(driver().dtoh(values.data(), address, count * sizeof(T), stream), kOk);
    return values;
  }
  template <class... Args>
  int launch(const char* kernel, unsigned blocks, unsigned threads, unsigned shared, void* stream,
             Args... args) {
    void* parameters[] = {&args..., nullptr};
    return driver().launch(function(kernel), blocks, 1, 1, threads, 1, 1, shared, stream,
                           parameters, nullptr);
  }
  void* function(const char* name);
  void* module();  // the self-test kernels on device 0, loaded on first use

  unsigned expected_bad_calls = 0;
  unsigned expected_guard_hits = 0;

 private:
  void* module_ = nullptr;
  std::vector<void*> streams_, events_, blocks_;
};

}  // namespace simgpu_test
