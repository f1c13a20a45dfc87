// What a clone, a block, a detach, a launch and a loaded module cost, each beside the plain way of
// doing it in the same run. Host costs are wall time per operation; device work is timed by events.
//
//   runtime_bench [--benchmark_filter=...]
//
// Benchmarks are registered for every device present: "clone/handle/cpu", "detach/1GiB/cuda:0", ...
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/context.h"
#include "runtime/pack_registry.h"
#include "runtime/stream_state.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/launch.h"
#include "tl/runtime/memory.h"

namespace tl {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

void add(const std::string& name, std::function<void(benchmark::State&)> body) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(body));
}

// ---- clone

// Both sides pay for a locked increment only once a second thread exists, so both are measured in
// that state too.
void start_a_thread() {
  static std::jthread sleeper([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
}

// The copy alone, and the copy with its destruction. The reported time is that of one clone.
template <class T>
void clone_only(benchmark::State& state, const T& original) {
  constexpr std::size_t kBatch = 1000;
  std::allocator<T> room;
  T* copies = room.allocate(kBatch);
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kBatch; ++i) std::construct_at(copies + i, original);
    benchmark::ClobberMemory();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    std::destroy_n(copies, kBatch);
    state.SetIterationTime(time.count() / kBatch);
  }
  room.deallocate(copies, kBatch);
}

template <class T>
void clone_and_destroy(benchmark::State& state, const T& original) {
  for (auto _ : state) {
    T copy = original;
    benchmark::DoNotOptimize(copy);
  }
}

template <class Make>
void clones(const std::string& name, const Make& make) {
  benchmark::RegisterBenchmark(("clone/" + name).c_str(),
                               [make](benchmark::State& state) { clone_only(state, make()); })
      ->UseManualTime()
      ->MinTime(0.00001);  // of the sum of single clones: thousands of batches
  add("clone+destroy/" + name,
      [make](benchmark::State& state) { clone_and_destroy(state, make()); });
}

void memory_clones(const Device& device, const std::string& threads) {
  for (const std::uint64_t bytes : {std::uint64_t{4096}, kGiB}) {
    clones(threads + "/DeviceMemory/" + (bytes == kGiB ? "1GiB/" : "4KiB/") + device.text(),
           [device, bytes] { return DeviceMemory<std::byte>(device, bytes); });
  }
}

void shared_pointers(const std::string& threads) {
  clones(threads + "/std::shared_ptr", [] { return std::make_shared<int>(1); });
}

// ---- pool

void pools(const Device& device) {
  for (const std::uint64_t bytes :
       {std::uint64_t{4096}, std::uint64_t{1} << 20, std::uint64_t{64} << 20}) {
    const std::string size = std::to_string(bytes >> 10) + "KiB/" + device.text();
    add("pool/take+return/" + size, [device, bytes](benchmark::State& state) {
      {
        const DeviceMemory<std::byte> warm(device, bytes);
      }
      for (auto _ : state) {
        const DeviceMemory<std::byte> memory(device, bytes);
        benchmark::DoNotOptimize(memory.data());
      }
    });
    if (device.is_cpu()) {
      add("pool/malloc+free/" + size, [bytes](benchmark::State& state) {
        for (auto _ : state) {
          void* memory = std::malloc(bytes);
          benchmark::DoNotOptimize(memory);
          static_cast<char*>(memory)[0] = 1;  // or the pair is removed
          std::free(memory);
        }
      });
      continue;
    }
    const driver::Table& table = device.context().table();
    if (table.allocate_async != nullptr) {
      add("pool/driver async allocate+free/" + size,
          [device, bytes, &table](benchmark::State& state) {
            const CurrentContext current(device.context());
            for (auto _ : state) {
              void* memory = nullptr;
              if (table.allocate_async(&memory, bytes, device.stream().native()) != 0 ||
                  table.free_async(memory, device.stream().native()) != 0) {
                state.SkipWithError("the driver has no async allocator");
                break;
              }
            }
            device.synchronize();
          });
    }
    add("pool/driver allocate+free/" + size, [device, bytes, &table](benchmark::State& state) {
      const CurrentContext current(device.context());
      for (auto _ : state) {
        void* memory = nullptr;
        if (table.allocate(&memory, bytes) != 0) state.SkipWithError("allocation failed");
        table.free(memory, bytes);
      }
    });
  }
}

// ---- detach

// Times `work` on the device, one iteration at a time.
template <class Work>
void time_on_device(benchmark::State& state, const Device& device, Work&& work) {
  Stream stream = device.stream();
  for (auto _ : state) {
    const Event start = stream.record(true);
    work();
    const Event stop = stream.record(true);
    state.SetIterationTime(stop.milliseconds_since(start) / 1000);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * 2 * kGiB));
}

void detaches(const Device& device) {
  benchmark::RegisterBenchmark(("detach/1GiB/detach/" + device.text()).c_str(),
                               [device](benchmark::State& state) {
                                 const auto memory = DeviceMemory<std::byte>::zeros(device, kGiB);
                                 {
                                   auto warm = memory;
                                   warm.mutable_data();
                                 }
                                 device.synchronize();
                                 time_on_device(state, device, [&] {
                                   auto copy = memory;
                                   benchmark::DoNotOptimize(copy.mutable_data());
                                 });
                               })
      ->UseManualTime()
      ->MinTime(1.0);
  benchmark::RegisterBenchmark(("detach/1GiB/plain device copy/" + device.text()).c_str(),
                               [device](benchmark::State& state) {
                                 const auto from = DeviceMemory<std::byte>::zeros(device, kGiB);
                                 auto to = DeviceMemory<std::byte>::zeros(device, kGiB);
                                 const CurrentContext current(device.context());
                                 device.synchronize();
                                 time_on_device(state, device, [&] {
                                   device.context().table().copy(to.mutable_data(), from.data(),
                                                                 kGiB, device.stream().native());
                                 });
                               })
      ->UseManualTime()
      ->MinTime(1.0);
  add("overwrite/shared 64MiB, device copies made/" + device.text(),
      [device](benchmark::State& state) {
        const auto memory = DeviceMemory<std::byte>::zeros(device, 64 << 20);
        const DriverCalls before = device.driver_calls();
        for (auto _ : state) {
          auto copy = memory;
          copy.memset(1);
        }
        device.synchronize();
        const std::uint64_t copies = device.driver_calls().device_copies - before.device_copies;
        state.counters["device_copies"] = static_cast<double>(copies);
        if (copies != 0) state.SkipWithError("a full overwrite copied the old bytes");
      });
}

// ---- launches

// The host's part of a launch: a batch is timed while the device falls behind, then drained outside
// the timing. The batch is smaller than any driver's queue, so nothing waits in it. The reported
// time is that of one launch.
template <class Launch>
void time_launches(benchmark::State& state, const Device& device, Launch&& launch_one) {
  constexpr int kBatch = 200;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) launch_one();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    device.synchronize();
    state.SetIterationTime(time.count() / kBatch);
  }
}

void add_launches(const std::string& name, std::function<void(benchmark::State&)> body) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(body))
      ->UseManualTime()
      ->Unit(benchmark::kNanosecond)
      ->MinTime(0.002);  // of the sum of single launches: about a thousand batches
}

void launches(const Device& device) {
  if (device.is_cpu()) return;
  const KernelId id = fill_kernel(4);
  const auto warm = [device, id] {
    device.modules().function(module_spec(id.module), id.index);
    device.synchronize();
  };
  add_launches("launch/tl::launch, all included/" + device.text(), [device, id,
                                                                    warm](benchmark::State& state) {
    warm();
    auto y = DeviceMemory<std::uint32_t>::zeros(device, 256);
    time_launches(state, device, [&] {
      launch(device.modules().function(module_spec(id.module), id.index), device.stream(),
             {.grid = {1}, .block = {256}}, out(y), std::uint32_t{7}, 256LL);
    });
  });
  const auto alone = [device, id, warm](benchmark::State& state, auto call) {
    warm();
    auto y = DeviceMemory<std::uint32_t>::zeros(device, 256);
    const CurrentContext current(device.context());
    const Function& function = device.modules().function(module_spec(id.module), id.index);
    void* address = y.mutable_data();
    std::uint32_t value = 7;
    long long count = 256;
    std::array<void*, 3> arguments{&address, &value, &count};
    time_launches(state, device, [&] {
      call(function.native(), {1, 1, 1}, {256, 1, 1}, 0, device.stream().native(),
           arguments.data());
    });
  };
  add_launches(
      "launch/driver call alone/" + device.text(),
      [device, alone](benchmark::State& state) { alone(state, device.context().table().launch); });
  if (device.context().table().launch_early != nullptr) {
    add_launches("launch/driver call alone, early/" + device.text(),
                 [device, alone](benchmark::State& state) {
                   alone(state, device.context().table().launch_early);
                 });
  }
  // Everything but the driver's own call, which a driver that does nothing stands in for.
  add_launches("launch/tl::launch without the driver's call/" + device.text(),
               [device, id, warm](benchmark::State& state) {
                 warm();
                 auto y = DeviceMemory<std::uint32_t>::zeros(device, 256);
                 driver::Table& table = driver::table_for_testing(device.kind());
                 const driver::Table real = table;
                 table.launch = [](driver::Handle, driver::Dim3, driver::Dim3, unsigned,
                                   driver::Handle, void**) { return driver::kSuccess; };
                 if (table.launch_early != nullptr) table.launch_early = table.launch;
                 time_launches(state, device, [&] {
                   launch(device.modules().function(module_spec(id.module), id.index),
                          device.stream(), {.grid = {1}, .block = {256}}, out(y), std::uint32_t{7},
                          256LL);
                 });
                 table = real;
               });
  add("module/function from the store/" + device.text(),
      [device, id, warm](benchmark::State& state) {
        warm();
        for (auto _ : state) {
          benchmark::DoNotOptimize(&device.modules().function(module_spec(id.module), id.index));
        }
      });
  add("module/load each time/" + device.text(), [device, id](benchmark::State& state) {
    for (auto _ : state) {
      ModuleStore store(device.context());
      benchmark::DoNotOptimize(&store.function(module_spec(id.module), id.index));
    }
  });
}

}  // namespace
}  // namespace tl

int main(int argc, char** argv) {
  using namespace tl;
  benchmark::Initialize(&argc, argv);
  const std::vector<Device> devices = Device::all();
  shared_pointers("one thread");
  memory_clones(Device::cpu(), "one thread");
  add("clone/two threads/start", [](benchmark::State& state) {
    for (auto _ : state) start_a_thread();
  });
  shared_pointers("two threads");
  for (const Device& device : devices) {
    if (device.index() != 0) continue;
    memory_clones(device, "two threads");
    pools(device);
    detaches(device);
    launches(device);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
