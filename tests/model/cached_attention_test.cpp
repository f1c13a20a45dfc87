// Attention over caches against float64: every way to keep keys and values, sizes of heads, groups,
// windows, and passes that cross blocks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "model/cached_attention.h"
#include "model/gpu/cached_attention.h"
#include "model/rope_tables.h"
#include "support/on_every_device.h"
#include "tl/base/text.h"
#include "tl/runtime/stream.h"

namespace tl {
namespace {

constexpr KvType kTypes[] = {KvType::F16, KvType::BF16, KvType::Q8, KvType::F32};

struct Form {
  std::int64_t heads = 2;
  std::int64_t kv_heads = 1;
  std::int64_t key_size = 64;
  std::int64_t value_size = 64;
  std::int64_t window = 0;
  KvType type = KvType::F16;
  double softcap = 0;
  RopePairs pairs = RopePairs::Halves;
  std::int64_t layers = 1;
};

std::string text(const Form& f) {
  return join(f.heads, " heads of ", f.key_size, " and ", f.value_size, ", ", f.kv_heads,
              " for keys, window ", f.window, ", ", f.type, ", cap ", f.softcap);
}

// What one row's attention was about, and what came of it.
struct Row {
  std::size_t sequence;
  std::int64_t position;
  std::vector<float> q;
  std::vector<float> out;
};

// Sequences with caches on a device, and all that went into them.
class Model {
 public:
  Model(const Form& form, const Device& device, std::size_t sequences)
      : form_(form), device_(device), keys_(sequences), values_(sequences) {
    config_.heads = form.heads;
    config_.kv_heads = form.kv_heads;
    config_.key_size = form.key_size;
    config_.value_size = form.value_size;
    config_.attention_scale = 1 / std::sqrt(static_cast<double>(form.key_size));
    config_.attention_softcap = form.softcap;
    config_.rope_pairs = form.pairs;
    config_.rope_size = form.key_size / 16 * 8;  // a part of each head stays as it is
    config_.attention.assign(static_cast<std::size_t>(form.layers), {form.window, 0});
    RopeFrequencies rope;
    for (std::int64_t i = 0; i < config_.rope_size / 2; ++i) {
      rope.radians.push_back(std::pow(100.0, -static_cast<double>(i) / 8));
    }
    config_.ropes = {rope};
    for (std::size_t i = 0; i < sequences; ++i) caches_.emplace_back(device, shape(), 1024);
  }

  // `counts[i]` more tokens of sequence i, all at once, in the last layer.
  std::vector<Row> pass(const std::vector<std::int64_t>& counts) {
    const Stream& stream = device_.stream();
    std::vector<model::SequenceRows> sequences;
    std::vector<Row> rows;
    std::int64_t total = 0, longest = 0;
    for (std::size_t s = 0; s < counts.size(); ++s) {
      if (counts[s] == 0) continue;
      const std::int64_t position = caches_[s].length();
      caches_[s].extend(counts[s], stream);
      sequences.push_back({total, counts[s], position, caches_[s].addresses(stream)});
      for (std::int64_t t = 0; t < counts[s]; ++t) rows.push_back({s, position + t, {}, {}});
      total += counts[s];
      longest = std::max(longest, position + counts[s]);
    }
    const std::vector<float> q = numbers(rows, form_.heads * form_.key_size, 1);
    const std::vector<float> k = numbers(rows, form_.kv_heads * form_.key_size, 2);
    const std::vector<float> v = numbers(rows, form_.kv_heads * form_.value_size, 3);
    const model::RopeTable table = model::RopeTables(config_.ropes, device_).get(0, longest);
    remember(rows, q, k, v);

    const auto on_device = [&](const std::vector<float>& x) {
      return Tensor::from(x, {total, std::ssize(x) / total}, device_);
    };
    Tensor queries = on_device(q), keys = on_device(k);
    const Tensor values = on_device(v);
    Tensor out =
        Tensor::uninitialized({total, form_.heads * form_.value_size}, DType::F32, device_);
    const KvShape kv = shape();
    const model::LayerCache layer{&config_, kv, form_.layers - 1, &table.cosines, &table.sines};
    if (device_.is_cpu()) {
      cpu::cached_attention(layer, sequences, queries, keys, values, out);
    } else {
      const gpu::AttentionBatch batch(config_, sequences, device_);
      gpu::cached_attention(layer, batch, queries, keys, values, out);
    }
    for (std::size_t s = 0; s < counts.size(); ++s) caches_[s].commit(counts[s]);
    const std::vector<float> found = out.to_vector<float>();
    const auto each = static_cast<std::size_t>(form_.heads * form_.value_size);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      rows[r].out.assign(found.begin() + static_cast<std::ptrdiff_t>(r * each),
                         found.begin() + static_cast<std::ptrdiff_t>((r + 1) * each));
    }
    return rows;
  }

  // Of head h of a row, in float64.
  std::vector<double> expected(const Row& row, std::int64_t h) const {
    const std::int64_t kv = h / (form_.heads / form_.kv_heads), depth = form_.key_size;
    const float* query = row.q.data() + h * depth;
    const std::int64_t first =
        form_.window == 0 ? 0 : std::max<std::int64_t>(0, row.position - form_.window + 1);
    std::vector<double> scores;
    double most = -std::numeric_limits<double>::infinity();
    for (std::int64_t p = first; p <= row.position; ++p) {
      const float* key = keys_[row.sequence][static_cast<std::size_t>(p)].data() + kv * depth;
      double x = 0;
      for (std::int64_t i = 0; i < depth; ++i) x += static_cast<double>(query[i]) * key[i];
      x *= config_.attention_scale;
      if (form_.softcap != 0) x = form_.softcap * std::tanh(x / form_.softcap);
      scores.push_back(x);
      most = std::max(most, x);
    }
    double sum = 0;
    std::vector<double> result(static_cast<std::size_t>(form_.value_size));
    for (std::int64_t p = first; p <= row.position; ++p) {
      const double weight = std::exp(scores[static_cast<std::size_t>(p - first)] - most);
      const float* value =
          values_[row.sequence][static_cast<std::size_t>(p)].data() + kv * form_.value_size;
      sum += weight;
      for (std::size_t c = 0; c < result.size(); ++c) result[c] += weight * value[c];
    }
    for (double& x : result) x /= sum;
    return result;
  }

  // On the CPU all is f32, but a turned key that is as near to one number of the cache's type as to
  // the next may become either. On GPUs products are of halves: the weights, about 1 together, are
  // rounded by 2^-12 on average and at most 2^-11 each, and scores of up to 5 shift by some 2^-11
  // with their queries. Values are up to 4.
  void expect_right(const std::vector<Row>& rows) const {
    const double bound = !device_.is_cpu() ? 3e-3 : form_.type == KvType::F32 ? 1e-5 : 1e-4;
    double squares = 0, count = 0;
    for (const Row& row : rows) {
      for (std::int64_t h = 0; h < form_.heads; ++h) {
        const std::vector<double> want = expected(row, h);
        for (std::size_t c = 0; c < want.size(); ++c) {
          const double off = row.out[static_cast<std::size_t>(h * form_.value_size) + c] - want[c];
          ASSERT_LE(std::abs(off), bound)
              << text(form_) << " position " << row.position << " head " << h << " column " << c;
          squares += off * off;
          count += 1;
        }
      }
    }
    EXPECT_LE(std::sqrt(squares / count), bound / 6) << text(form_);
  }

 private:
  KvShape shape() const {
    return {form_.layers, form_.kv_heads, form_.key_size, form_.value_size, form_.type};
  }

  // The same for a position of a sequence in whatever pass it comes.
  static std::vector<float> numbers(const std::vector<Row>& rows, std::int64_t each, int kind) {
    std::vector<float> out;
    for (const Row& row : rows) {
      std::mt19937_64 random(static_cast<std::uint64_t>(row.position) * 64 + row.sequence * 4 +
                             static_cast<std::uint64_t>(kind));
      std::normal_distribution<float> normal;
      for (std::int64_t i = 0; i < each; ++i) out.push_back(normal(random));
    }
    return out;
  }

  void turn(float* head, std::int64_t position) const {
    const std::int64_t half = config_.rope_size / 2;
    const bool halves = form_.pairs == RopePairs::Halves;
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(position) * config_.ropes[0].radians[static_cast<std::size_t>(i)];
      const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
      float& a = head[halves ? i : 2 * i];
      float& b = head[halves ? i + half : 2 * i + 1];
      const float x = a, y = b;
      a = x * c - y * s;
      b = x * s + y * c;
    }
  }

  // As the cache keeps them.
  void round(std::vector<float>& row) const {
    if (form_.type == KvType::Q8) {
      for (std::size_t at = 0; at < row.size(); at += 32) {
        float most = 0;
        for (std::size_t i = 0; i < 32; ++i) most = std::max(most, std::abs(row[at + i]));
        const auto d = convert<float>(convert<half>(most / 127));
        for (std::size_t i = 0; i < 32; ++i) {
          row[at + i] = d * std::nearbyint(row[at + i] * (1 / d));
        }
      }
      return;
    }
    for (float& x : row) {
      if (form_.type == KvType::F16) x = convert<float>(convert<half>(x));
      if (form_.type == KvType::BF16) x = convert<float>(convert<bfloat16>(x));
    }
  }

  void remember(std::vector<Row>& rows, const std::vector<float>& q, const std::vector<float>& k,
                const std::vector<float>& v) {
    const auto part = [&](const std::vector<float>& from, std::size_t r) {
      const auto each = static_cast<std::ptrdiff_t>(from.size() / rows.size());
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(r) * each;
      return std::vector<float>(begin, begin + each);
    };
    for (std::size_t r = 0; r < rows.size(); ++r) {
      Row& row = rows[r];
      row.q = part(q, r);
      std::vector<float> key = part(k, r), value = part(v, r);
      for (std::int64_t h = 0; h < form_.heads; ++h) {
        turn(row.q.data() + h * form_.key_size, row.position);
      }
      for (std::int64_t h = 0; h < form_.kv_heads; ++h) {
        turn(key.data() + h * form_.key_size, row.position);
      }
      round(key);
      round(value);
      keys_[row.sequence].push_back(std::move(key));
      values_[row.sequence].push_back(std::move(value));
    }
  }

  Form form_;
  Device device_;
  DecoderConfig config_;
  std::vector<KvCache> caches_;
  std::vector<std::vector<std::vector<float>>> keys_, values_;  // [sequence][position]
};

class CachedAttention : public test::OnEveryDevice {
 protected:
  // Passes of so many tokens, one after the other, of one sequence.
  void expect_passes(const Form& form, const std::vector<std::int64_t>& counts) {
    Model model(form, device(), 1);
    for (const std::int64_t count : counts) {
      model.expect_right(model.pass({count}));
      if (HasFatalFailure()) return;
    }
  }
};
TL_ON_EVERY_DEVICE(CachedAttention);

// Every kernel once, on the smallest inputs: what an emulator has time for.
TEST_P(CachedAttention, SweepOverEveryKernel) {
  for (const KvType type : kTypes) {
    for (const std::int64_t size : {64, 128}) {
      expect_passes({.heads = 1, .key_size = size, .value_size = size, .type = type}, {3});
    }
  }
}

TEST_P(CachedAttention, HeadsOfEverySizeInEveryType) {
  for (const KvType type : kTypes) {
    for (const std::int64_t size : {8, 32, 64, 80, 96, 128, 256}) {
      if (type == KvType::Q8 && size % 32 != 0) continue;
      expect_passes({.key_size = size, .value_size = size, .type = type}, {5, 1, 62});
    }
  }
}

TEST_P(CachedAttention, ValuesMayHaveAnotherSizeThanKeys) {
  for (const KvType type : kTypes) {
    expect_passes({.key_size = 128, .value_size = 32, .type = type}, {70});
    expect_passes({.key_size = 32, .value_size = 160, .type = type}, {70});
    expect_passes({.key_size = 192, .value_size = 128, .type = type}, {70});
  }
  expect_passes({.key_size = 40, .value_size = 72}, {70});
  expect_passes({.key_size = 136, .value_size = 24, .type = KvType::F32}, {70});
}

TEST_P(CachedAttention, HeadsShareKeysInGroupsOfAnySize) {
  for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {3, 3}, {3, 1}, {6, 2}, {8, 1}, {16, 2}}) {
    expect_passes({.heads = heads, .kv_heads = kv_heads, .key_size = 32, .value_size = 32},
                  {1, 40, 30});
  }
}

TEST_P(CachedAttention, PassesCrossBlocks) {
  expect_passes({.heads = 4, .key_size = 32, .value_size = 32}, {60, 3, 1, 1, 70, 64, 1});
  expect_passes({.heads = 1, .key_size = 32, .value_size = 32}, {130, 5});
}

TEST_P(CachedAttention, WindowsOfAnyLength) {
  for (const std::int64_t window : {1, 5, 64, 100}) {
    expect_passes({.key_size = 32, .value_size = 32, .window = window}, {150, 1, 3, 70});
    expect_passes({.key_size = 128, .value_size = 32, .window = window, .type = KvType::Q8},
                  {70, 2});
  }
}

TEST_P(CachedAttention, ScoresAreCapped) {
  // Scores of some units bend under a cap of one.
  expect_passes({.key_size = 64, .softcap = 1}, {66, 1});
  expect_passes({.key_size = 128, .window = 20, .type = KvType::F32, .softcap = 50}, {66, 1});
}

TEST_P(CachedAttention, NeighboursTurnToo) {
  expect_passes({.key_size = 80, .value_size = 80, .pairs = RopePairs::Neighbours}, {66, 1});
}

TEST_P(CachedAttention, OtherLayersAreLeftAlone) {
  expect_passes({.kv_heads = 2, .key_size = 32, .value_size = 64, .layers = 3}, {66, 1});
}

TEST_P(CachedAttention, SeveralSequencesAtOnce) {
  Model model({.heads = 6, .kv_heads = 2, .key_size = 32, .value_size = 32}, device(), 4);
  for (const std::vector<std::int64_t>& counts :
       {std::vector<std::int64_t>{70, 1, 0, 12}, {1, 1, 1, 1}, {3, 90, 5, 0}, {1, 0, 2, 60}}) {
    model.expect_right(model.pass(counts));
  }
}

// Nobody can tell from a row's result in which company it was computed.
TEST_P(CachedAttention, ARowsResultDoesNotDependOnItsCompany) {
  if (device().is_cpu()) GTEST_SKIP() << "the CPU's sums depend on the size of a block of rows";
  for (const std::int64_t window : {0, 9}) {
    const Form form{.heads = 3, .key_size = 64, .value_size = 64, .window = window};
    std::vector<std::vector<float>> first;
    for (const std::vector<std::int64_t>& counts :
         {std::vector<std::int64_t>{90}, {1, 88, 1}, {30, 30, 30}}) {
      Model model(form, device(), 1);
      std::vector<std::vector<float>> all;
      for (const std::int64_t count : counts) {
        for (Row& row : model.pass({count})) all.push_back(std::move(row.out));
      }
      if (first.empty()) first = all;
      EXPECT_TRUE(all == first) << "window " << window;
    }
  }
}

}  // namespace
}  // namespace tl
