// Work that is put off: whatever is done on its stream finds it queued.
#include "runtime/deferred.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/on_every_device.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/launch.h"
#include "tl/runtime/memory.h"

namespace tl {
namespace {

// Puts off writing a number to memory that it shares with who wants it.
class Promise final : public DeferredWork {
 public:
  Promise(const Device& device, int number) : DeferredWork(device.stream()), number_(number) {
    memory_.emplace(device, 100);
  }
  ~Promise() { end(); }

  // Memory that will hold the number everywhere.
  DeviceMemory<int> make() {
    const Alone alone(*this);
    set_waiting(true);
    return *memory_;
  }
  int submitted() const { return submitted_; }

 private:
  void submit() override {
    ++submitted_;
    set_waiting(false);
    const auto numbers =
        DeviceMemory<int>::from_host(memory_->device(), std::vector<int>(100, number_));
    memory_->raw().keep_promise(numbers.raw());
  }

  std::optional<DeviceMemory<int>> memory_;
  int number_;
  int submitted_ = 0;
};

class Deferred : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    if (device().is_cpu()) GTEST_SKIP() << "on the CPU work is done at the call";
  }
};
TL_ON_EVERY_DEVICE(Deferred);

TEST_P(Deferred, NothingHappensUntilTheStreamIsUsed) {
  Promise promise(device(), 7);
  ASSERT_TRUE(promise.may_defer());
  const DeviceMemory<int> numbers = promise.make();
  EXPECT_EQ(promise.submitted(), 0);
  EXPECT_EQ(numbers.to_vector(), std::vector<int>(100, 7));
  EXPECT_EQ(promise.submitted(), 1);
  EXPECT_EQ(numbers.to_vector(), std::vector<int>(100, 7));
  EXPECT_EQ(promise.submitted(), 1) << "it was submitted already";
}

TEST_P(Deferred, EverythingThatUsesTheStreamComesAfterIt) {
  Promise promise(device(), 3);
  Stream stream = device().stream();
  const Stream other = device().new_stream();
  const Event event = Stream(other).record();
  auto memory = DeviceMemory<int>::zeros(device(), 16);
  const std::pair<std::string, std::function<void()>> uses[] = {
      {"upload", [&] { memory.copy_from_host(std::vector<int>(16, 1)); }},
      {"download", [&] { memory.to_vector(); }},
      {"fill", [&] { memory.fill(2); }},
      {"copy",
       [&] {
         auto copy = memory;
         copy.mutable_data(stream);
       }},
      {"event", [&] { stream.record(); }},
      {"wait", [&] { stream.wait(event); }},
      {"wait of another", [&] { Stream(other).wait(stream); }},
      {"question", [&] { (void)stream.finished(); }},
      {"synchronize", [&] { stream.synchronize(); }},
      {"synchronize the device", [&] { device().synchronize(); }},
      {"handle", [&] { (void)stream.native(); }},
      {"use on another stream", [&] { promise.make().mutable_data(other); }},
  };
  for (const auto& [name, use] : uses) {
    const int before = promise.submitted();
    const DeviceMemory<int> numbers = promise.make();
    use();
    EXPECT_EQ(promise.submitted(), before + 1) << name;
    EXPECT_EQ(numbers.to_vector(), std::vector<int>(100, 3)) << name;
  }
}

TEST_P(Deferred, ALaunchComesAfterIt) {
  Promise promise(device(), 3);
  DeviceMemory<std::uint32_t> words(device(), 64);
  const KernelId id = fill_kernel(4);
  const Function& fill = device().modules().function(module_spec(id.module), id.index);
  const DeviceMemory<int> numbers = promise.make();
  launch(fill, device().stream(), {.grid = {1}, .block = {64}}, out(words), std::uint32_t{5},
         static_cast<long long>(64));
  EXPECT_EQ(promise.submitted(), 1);
}

TEST_P(Deferred, AnotherThreadFindsItQueuedToo) {
  Promise promise(device(), 9);
  const DeviceMemory<int> numbers = promise.make();
  std::vector<int> seen;
  std::thread([&] { seen = numbers.to_vector(); }).join();
  EXPECT_EQ(seen, std::vector<int>(100, 9));
}

TEST_P(Deferred, AStreamHasOneAtATime) {
  std::optional<Promise> first(std::in_place, device(), 1);
  {
    const Promise second(device(), 2);
    EXPECT_FALSE(second.may_defer());
  }
  const DeviceMemory<int> numbers = first->make();
  EXPECT_EQ(numbers.to_vector(), std::vector<int>(100, 1));
  first.reset();
  EXPECT_TRUE(Promise(device(), 2).may_defer());
}

TEST_P(Deferred, WhatIsGivenUpIsNotSubmitted) {
  {
    Promise promise(device(), 1);
    const DeviceMemory<int> numbers = promise.make();
  }
  device().synchronize();  // and reaches no one
}

}  // namespace
}  // namespace tl
