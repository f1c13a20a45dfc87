#include "tl/runtime/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "support/on_every_device.h"
#include "tl/runtime/label.h"
#include "tl/runtime/memory.h"

namespace tl {
namespace {

class Report : public test::OnEveryDevice {
 protected:
  DeviceMemoryReport mine() const {
    for (const auto& d : memory_report().devices) {
      if (d.location == GetParam()) return d;
    }
    ADD_FAILURE() << "no report for " << GetParam();
    return {};
  }
  static std::uint64_t bytes_of(const DeviceMemoryReport& report, const std::string& label) {
    const auto at = std::find_if(report.held.begin(), report.held.end(),
                                 [&](const LabelUse& use) { return use.label == label; });
    return at == report.held.end() ? 0 : at->bytes;
  }
};
TL_ON_EVERY_DEVICE(Report);

TEST_P(Report, NamesWhoHoldsWhat) {
  const DeviceMemory<char> weights(device(), 4000, Label("model.blk.0.attn_q"));
  const DeviceMemory<char> more(device(), 500, Label("model.blk.0.attn_q"));
  const DeviceMemory<char> other(device(), 100, Label("program.tl:12"));
  EXPECT_EQ(bytes_of(mine(), "model.blk.0.attn_q"), 4500U);
  EXPECT_EQ(bytes_of(mine(), "program.tl:12"), 100U);
  const std::string text = memory_report().text();
  EXPECT_NE(text.find("held: 4.39 KiB in 2 blocks by model.blk.0.attn_q"), std::string::npos)
      << text;
  EXPECT_FALSE(memory_report().everything_returned());
}

TEST_P(Report, ScopesLabelWhatIsTakenInsideThem) {
  const LabelScope outer("outer");
  const DeviceMemory<char> a(device(), 10);
  {
    const LabelScope inner("inner");
    const DeviceMemory<char> b(device(), 20);
    EXPECT_EQ(b.raw().label(), "inner");
    std::thread([&] { EXPECT_EQ(DeviceMemory<char>(device(), 1).raw().label(), ""); }).join();
  }
  const DeviceMemory<char> c(device(), 30);
  EXPECT_EQ(bytes_of(mine(), "outer"), 40U);
  EXPECT_EQ(bytes_of(mine(), "inner"), 0U);
}

TEST_P(Report, ADetachedBlockKeepsTheLabel) {
  const DeviceMemory<char> a(device(), 10, Label("origin"));
  auto b = a;
  b.mutable_data();
  EXPECT_EQ(b.raw().label(), "origin");
  EXPECT_EQ(bytes_of(mine(), "origin"), 20U);
}

TEST_P(Report, EverythingReturnedMeansNothingIsHeld) {
  {
    const DeviceMemory<char> a(device(), 10, Label("short-lived"));
  }
  EXPECT_EQ(mine().device.live_blocks, 0U);
  EXPECT_TRUE(memory_report().everything_returned()) << memory_report().text();
  EXPECT_NE(memory_report().text().find("everything was returned"), std::string::npos);
}

TEST(Labels, SameTextIsSameLabel) {
  EXPECT_EQ(Label("x"), Label(std::string("x")));
  EXPECT_FALSE(Label("x") == Label("y"));
  EXPECT_EQ(Label("").text(), "");
  EXPECT_EQ(Label("x").text(), "x");
}

std::vector<MemoryEvent> heard;
void listen(const MemoryEvent& event) noexcept { heard.push_back(event); }

TEST_P(Report, WhoListensHearsWhatHappensToMemory) {
  heard.clear();
  const MemoryHook before = set_memory_hook(listen);
  {
    DeviceMemory<char> a(device(), 4000, Label("heard"));
    DeviceMemory<char> b = a;  // shares: nothing happens
    b.mutable_data(device().stream());
  }
  EXPECT_EQ(set_memory_hook(before), &listen);
  std::vector<MemoryEvent> mine;
  for (const MemoryEvent& event : heard) {
    if (event.label == "heard" && event.location == GetParam()) mine.push_back(event);
  }
  ASSERT_EQ(mine.size(), 5U);
  using Kind = MemoryEvent::Kind;
  EXPECT_EQ(mine[0].kind, Kind::Allocate);
  EXPECT_EQ(mine[1].kind, Kind::Allocate);
  EXPECT_EQ(mine[2].kind, Kind::Detach);
  EXPECT_EQ(mine[2].block, mine[1].block);
  EXPECT_EQ(mine[2].detached, mine[0].block);
  EXPECT_EQ(mine[3].kind, Kind::Return);
  EXPECT_EQ(mine[4].kind, Kind::Return);
  for (const MemoryEvent& event : mine) {
    EXPECT_EQ(event.bytes, 4000U);
    EXPECT_FALSE(event.is_pinned);
  }
}

}  // namespace
}  // namespace tl
