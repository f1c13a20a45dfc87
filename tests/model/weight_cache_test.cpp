#include "tl/model/weight_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "model/weight_files.h"
#include "support/on_every_device.h"
#include "tl/model/weights.h"

namespace tl {
namespace {

using test::expect_error;

constexpr std::uint64_t kSize = 1024;  // bytes of a tensor here

class Cache : public test::OnEveryDevice {
 protected:
  void SetUp() override { before_ = device().pool(); }
  void TearDown() override {
    EXPECT_EQ(device().pool().live_bytes, before_.live_bytes);
    EXPECT_EQ(device().pool().live_blocks, before_.live_blocks);
  }
  // 256 floats, all of that value.
  QTensor tensor(float value, std::int64_t count = 256) const {
    const std::vector<float> values(static_cast<std::size_t>(count), value);
    return QTensor::from_blocks(std::as_bytes(std::span(values)), QType::F32, {count}, device());
  }
  WeightCache::Loader loader(float value) {
    return [this, value] {
      ++loads_;
      return tensor(value);
    };
  }
  static float value_of(const QTensor& tensor) {
    float value = 0;
    tensor.memory().download(0, &value, sizeof value);
    return value;
  }

  PoolStatistics before_;
  std::atomic<int> loads_{0};
};
TL_ON_EVERY_DEVICE(Cache);

TEST_P(Cache, LoadsOnceAndSharesAfterwards) {
  WeightCache cache(10 * kSize);
  const QTensor a = cache.get("a", loader(1));
  const QTensor b = cache.get("a", loader(2));
  EXPECT_EQ(loads_, 1);
  EXPECT_TRUE(a.shares_memory_with(b));
  EXPECT_EQ(value_of(b), 1.0F);
  EXPECT_EQ(device().pool().live_bytes - before_.live_bytes, kSize);
  const WeightCacheStatistics now = cache.statistics();
  EXPECT_EQ(now.hits, 1U);
  EXPECT_EQ(now.loads, 1U);
  EXPECT_EQ(now.tensors, 1U);
  EXPECT_EQ(now.bytes, kSize);
  EXPECT_EQ(now.held_tensors, 0U);
  EXPECT_EQ(now.budget_bytes, 10 * kSize);
}

TEST_P(Cache, LetsGoOfWhatWasNotAskedForLongest) {
  WeightCache cache(3 * kSize);
  for (const char* key : {"a", "b", "c"}) cache.get(key, loader(1));
  cache.get("a", loader(1));
  cache.get("d", loader(1));  // b goes
  EXPECT_EQ(loads_, 4);
  for (const char* key : {"a", "c", "d"}) EXPECT_TRUE(cache.find(key)) << key;
  EXPECT_FALSE(cache.find("b"));
  const WeightCacheStatistics now = cache.statistics();
  EXPECT_EQ(now.evictions, 1U);
  EXPECT_EQ(now.bytes, 3 * kSize);
  EXPECT_EQ(now.held_bytes, 0U);
  EXPECT_EQ(device().pool().live_bytes - before_.live_bytes, 3 * kSize);
}

TEST_P(Cache, WhatIsStillHeldIsSharedAgainAndCountedOnce) {
  WeightCache cache(2 * kSize);
  std::optional<QTensor> a = cache.get("a", loader(1));
  cache.get("b", loader(2));
  cache.get("c", loader(3));  // a goes, and somebody has it
  WeightCacheStatistics now = cache.statistics();
  EXPECT_EQ(now.tensors, 2U);
  EXPECT_EQ(now.bytes, 2 * kSize);
  EXPECT_EQ(now.held_tensors, 1U);
  EXPECT_EQ(now.held_bytes, kSize);
  EXPECT_EQ(value_of(*a), 1.0F);

  const QTensor again = cache.get("a", loader(9));
  EXPECT_EQ(loads_, 3);
  EXPECT_TRUE(again.shares_memory_with(*a));
  EXPECT_EQ(again.shape(), a->shape());
  EXPECT_EQ(again.type(), a->type());
  now = cache.statistics();
  EXPECT_EQ(now.shared, 1U);
  EXPECT_EQ(now.held_tensors, 0U);  // b went, and nobody has it
  EXPECT_EQ(now.bytes, 2 * kSize);
  EXPECT_EQ(device().pool().live_bytes - before_.live_bytes, 2 * kSize);
}

TEST_P(Cache, WhatNobodyHoldsAnyMoreIsLoadedAgain) {
  WeightCache cache(kSize);
  {
    const QTensor a = cache.get("a", loader(1));
    cache.get("b", loader(2));
    EXPECT_EQ(cache.statistics().held_tensors, 1U);
  }
  EXPECT_EQ(cache.statistics().held_tensors, 0U);
  EXPECT_EQ(value_of(cache.get("a", loader(5))), 5.0F);
  EXPECT_EQ(loads_, 3);
}

TEST_P(Cache, AHolderThatWritesDoesNotChangeWhatIsCached) {
  WeightCache cache(kSize);
  RawMemory mine = cache.get("a", loader(1)).memory();
  cache.get("b", loader(2));
  const float other = 7;
  mine.upload(0, &other, sizeof other);  // its sole owner, and still it detaches
  EXPECT_EQ(value_of(cache.get("a", loader(1))), 1.0F);
}

TEST_P(Cache, ATensorAboveTheBudgetIsGivenAndNotKept) {
  WeightCache cache(2 * kSize);
  cache.get("small", loader(1));
  {
    const QTensor large = cache.get("large", [&] { return tensor(2, 4096); });
    EXPECT_EQ(cache.statistics().tensors, 1U);
    EXPECT_EQ(cache.statistics().held_bytes, 4 * 4096U);
    EXPECT_TRUE(cache.get("large", loader(3)).shares_memory_with(large));
  }
  EXPECT_FALSE(cache.find("large"));
  EXPECT_TRUE(cache.find("small"));
  EXPECT_EQ(cache.statistics().evictions, 0U);
}

TEST_P(Cache, MemoryOfTwoTensorsCountsOnce) {
  WeightCache cache(3 * kSize);
  const QTensor both = QTensor::from_memory(tensor(1, 512).memory(), QType::F32, {2, 256});
  cache.get("first", [&] { return both.get(0); });
  cache.get("second", [&] { return both.get(1); });
  EXPECT_EQ(cache.statistics().tensors, 2U);
  EXPECT_EQ(cache.statistics().bytes, 2 * kSize);
  EXPECT_EQ(cache.trim(0), 2 * kSize);
  EXPECT_EQ(cache.statistics().held_tensors, 2U);
  EXPECT_EQ(cache.statistics().held_bytes, 2 * kSize);
  EXPECT_TRUE(cache.get("second", loader(3)).shares_memory_with(both));
  EXPECT_EQ(cache.statistics().held_bytes, 0U);  // the first is in memory that is kept
}

TEST_P(Cache, TrimBudgetEraseAndClearGiveBack) {
  WeightCache cache(10 * kSize);
  for (int i = 0; i < 6; ++i) cache.get(std::to_string(i), loader(1));
  EXPECT_EQ(cache.trim(4 * kSize), 2 * kSize);
  EXPECT_FALSE(cache.find("1"));
  EXPECT_TRUE(cache.find("2"));
  cache.set_budget(3 * kSize);
  EXPECT_EQ(device().pool().live_bytes - before_.live_bytes, 3 * kSize);
  EXPECT_TRUE(cache.erase("5"));
  EXPECT_FALSE(cache.erase("5"));
  const QTensor kept = *cache.find("4");
  cache.clear();
  EXPECT_EQ(cache.statistics().bytes, 0U);
  EXPECT_EQ(cache.statistics().held_tensors, 0U);
  EXPECT_FALSE(cache.find("4"));  // forgotten, though it is held
  EXPECT_EQ(device().pool().live_bytes - before_.live_bytes, kSize);
  EXPECT_EQ(value_of(kept), 1.0F);
}

TEST_P(Cache, NoTensorIsATensorToo) {
  WeightCache cache(kSize);
  cache.get("empty", [] { return QTensor(); });
  EXPECT_EQ(cache.get("empty", loader(1)).count(), 0);
  EXPECT_EQ(loads_, 0);
  cache.get("also", [&] { return tensor(0, 0); });
  EXPECT_EQ(cache.statistics().bytes, 0U);
  cache.clear();
}

TEST_P(Cache, AFailedLoadKeepsNothingAndIsTriedAgain) {
  WeightCache cache(kSize);
  EXPECT_THROW(cache.get("a", []() -> QTensor { throw std::runtime_error("no"); }),
               std::runtime_error);
  expect_error(ErrorKind::BadFile, "f: gone", [&] {
    cache.get("a", []() -> QTensor { throw Error(ErrorKind::BadFile, "f", "gone"); });
  });
  EXPECT_EQ(cache.statistics().failures, 2U);
  EXPECT_EQ(cache.statistics().tensors, 0U);
  EXPECT_EQ(value_of(cache.get("a", loader(3))), 3.0F);
}

TEST_P(Cache, ServesTensorsOfAFile) {
  const test::Folder folder;
  const GgufFile file = GgufFile::open(test::write_model(folder.file("m.gguf"), {}));
  WeightCache cache(std::uint64_t{1} << 20);
  for (int round = 0; round < 2; ++round) {
    for (const GgufTensorInfo& info : file.tensors()) {
      const QTensor loaded =
          cache.get(info.name, [&] { return load_tensor(file, info.name, device()); });
      const auto bytes = file.bytes(info);
      EXPECT_EQ(loaded.to_blocks(), std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
  }
  EXPECT_EQ(cache.statistics().hits, file.tensors().size());
  cache.clear();
  EXPECT_EQ(device().pool().mapped_bytes, before_.mapped_bytes);
}

// ---- threads

// Exceptions that two threads get, kept until both are gone: ThreadSanitizer does not see how the
// C++ library counts who still has one, and takes the end of it for a race.
class KeptErrors {
 public:
  template <class F>
  QTensor around(F&& f) {
    try {
      return f();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      errors_.push_back(std::current_exception());
      throw;
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::exception_ptr> errors_;
};

TEST_P(Cache, ThreadsThatAskForOneTensorLoadItOnce) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 10; ++round) {
    WeightCache cache(10 * kSize);
    loads_ = 0;
    std::latch start(kThreads);
    std::vector<std::thread> threads;
    std::vector<QTensor> results(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        results[static_cast<std::size_t>(t)] = cache.get("a", [&] {
          std::this_thread::yield();
          return loader(4)();
        });
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(loads_, 1);
    for (const QTensor& each : results) EXPECT_TRUE(each.shares_memory_with(results[0]));
    const WeightCacheStatistics now = cache.statistics();
    EXPECT_EQ(now.loads, 1U);
    EXPECT_EQ(now.hits + now.waits, 3U);
  }
}

TEST_P(Cache, TheErrorOfALoadGoesToAllWhoWait) {
  WeightCache cache(10 * kSize);
  KeptErrors errors;
  std::binary_semaphore is_loading(0), may_fail(0);
  std::thread first([&] {
    expect_error(ErrorKind::BadFile, "f: gone", [&] {
      cache.get("a", [&] {
        is_loading.release();
        may_fail.acquire();
        return errors.around([]() -> QTensor { throw Error(ErrorKind::BadFile, "f", "gone"); });
      });
    });
  });
  is_loading.acquire();
  std::thread second(
      [&] { expect_error(ErrorKind::BadFile, "f: gone", [&] { cache.get("a", loader(1)); }); });
  while (cache.statistics().waits == 0) std::this_thread::yield();
  may_fail.release();
  first.join();
  second.join();
  EXPECT_EQ(loads_, 0);
  EXPECT_EQ(value_of(cache.get("a", loader(6))), 6.0F);
}

TEST_P(Cache, DifferentTensorsAreLoadedAtTheSameTime) {
  WeightCache cache(10 * kSize);
  std::latch both(2);  // neither loader returns before the other has begun
  const auto load = [&](const char* key) {
    cache.get(key, [&] {
      both.arrive_and_wait();
      return tensor(1);
    });
  };
  std::thread other([&] { load("a"); });
  load("b");
  other.join();
  EXPECT_EQ(cache.statistics().tensors, 2U);
}

TEST_P(Cache, LoadersMayAskForOthersAndNotForThemselves) {
  WeightCache cache(10 * kSize);
  EXPECT_EQ(value_of(cache.get("outer", [&] { return cache.get("inner", loader(2)); })), 2.0F);
  expect_error(ErrorKind::BadArgument, "the loader of 'a' waits for that same tensor", [&] {
    cache.get("a", [&] { return cache.get("b", [&] { return cache.get("a", loader(1)); }); });
  });
  EXPECT_EQ(value_of(cache.get("a", loader(8))), 8.0F);
}

TEST_P(Cache, LoadersThatWaitForEachOtherAreAnErrorAndNoHang) {
  WeightCache cache(10 * kSize);
  KeptErrors kept;
  std::latch both(2);
  std::atomic<int> errors{0};
  const auto load = [&](const char* mine, const char* theirs) {
    try {
      cache.get(mine, [&] {
        both.arrive_and_wait();
        return kept.around([&] { return cache.get(theirs, loader(1)); });
      });
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::BadArgument);
      ++errors;
    }
  };
  std::thread other([&] { load("a", "b"); });
  load("b", "a");
  other.join();
  EXPECT_EQ(errors, 2);
  EXPECT_EQ(cache.statistics().tensors, 0U);
}

TEST_P(Cache, WhatIsClearedWhileItLoadsIsNotKept) {
  WeightCache cache(10 * kSize);
  const auto clearing = [&] {
    cache.clear();
    return tensor(1);
  };
  EXPECT_EQ(value_of(cache.get("a", clearing)), 1.0F);
  EXPECT_EQ(cache.statistics().tensors, 0U);
  cache.get("a", [&] {
    cache.erase("a");
    cache.get("a", loader(2));  // a load of its own
    return tensor(1);
  });
  EXPECT_EQ(value_of(*cache.find("a")), 2.0F);
}

TEST_P(Cache, StaysRightUnderManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  constexpr int kKeys = 12;
  WeightCache cache(5 * kSize);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t) + 1);
      std::map<int, QTensor> mine;  // some are held while the cache lets go of them
      for (int i = 0; i < kRounds; ++i) {
        const int key = static_cast<int>(random() % kKeys);
        const QTensor got =
            cache.get(std::to_string(key), [&] { return tensor(static_cast<float>(key)); });
        ASSERT_EQ(value_of(got), static_cast<float>(key));
        mine[key] = got;
        if (mine.size() > 3) mine.erase(mine.begin());
        if (i % 50 == 49) cache.trim(kSize);
        if (i % 97 == 96) cache.clear();
        ASSERT_LE(cache.statistics().bytes, 5 * kSize);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const WeightCacheStatistics now = cache.statistics();
  EXPECT_EQ(now.hits + now.shared + now.waits + now.loads, kThreads * kRounds);
  EXPECT_EQ(now.held_tensors, 0U);
  EXPECT_EQ(device().pool().live_bytes - before_.live_bytes, now.bytes);
}

}  // namespace
}  // namespace tl
