#include "cli/progress.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>

namespace tl::cli {
namespace {

ProgressState half() {
  ProgressState state;
  state.label = "read";
  state.unit = "tokens";
  state.done = 500;
  state.total = 1000;
  state.rate = 50;
  return state;
}

TEST(ProgressText, HasBarShareRateAndTheTimeThatIsLeft) {
  EXPECT_EQ(progress_text(half(), 120),
            "read [===========>            ]  50% 500/1,000 tokens 50.0 tokens/s 0:10 left");
}

TEST(ProgressText, WhatIsDoneIsShownLastAndCut) {
  ProgressState state = half();
  state.what = "blk.0.ffn_down.weight";
  const std::string whole = progress_text(state, 120);
  EXPECT_TRUE(whole.ends_with("0:10 left blk.0.ffn_down.weight")) << whole;
  const std::string cut = progress_text(state, 85);
  EXPECT_LE(cut.size(), 84U);
  EXPECT_NE(cut.find("left blk."), cut.npos) << cut;
}

TEST(ProgressText, FitsEveryWidth) {
  ProgressState state = half();
  state.what = "ein langer Name mit Umlauten äöü";
  for (std::size_t columns = 0; columns < 130; ++columns) {
    EXPECT_LE(progress_text(state, columns).size(), columns + 3) << columns;  // three of two bytes
  }
  EXPECT_EQ(progress_text(state, 12), "read  50%");  // the share without a bar
  EXPECT_EQ(progress_text(state, 0), "");
}

TEST(ProgressText, BytesHaveTheirUnits) {
  ProgressState state = half();
  state.unit = "bytes";
  state.done = 1 << 20;
  state.total = 4 << 20;
  state.rate = 1 << 19;
  EXPECT_EQ(progress_text(state, 120),
            "read [=====>                  ]  25% 1.00 MiB/4.00 MiB 512 KiB/s 0:06 left");
}

TEST(ProgressText, WithoutATotalAWheelTurns) {
  ProgressState state = half();
  state.total = 0;
  const std::string first = progress_text(state, 120);
  EXPECT_EQ(first, "read | 500 tokens 50.0 tokens/s");
  state.turn = 1;
  EXPECT_EQ(progress_text(state, 120), "read / 500 tokens 50.0 tokens/s");
}

TEST(ProgressText, UnknownRatesAndLongTimes) {
  ProgressState state = half();
  state.rate = 0;
  EXPECT_EQ(progress_text(state, 120), "read [===========>            ]  50% 500/1,000 tokens");
  state.rate = 0.1;
  EXPECT_TRUE(progress_text(state, 120).ends_with(" 1:23:20 left"));
  state.rate = 1e-9;
  EXPECT_TRUE(progress_text(state, 120).ends_with(" long left"));
}

TEST(ProgressText, MoreThanAllIsAll) {
  ProgressState state = half();
  state.done = 5000;
  EXPECT_NE(progress_text(state, 120).find("100% 1,000/1,000"), std::string::npos);
}

TEST(ProgressText, ColoursTakeNoRoom) {
  ProgressState state = half();
  state.is_coloured = true;
  const std::string text = progress_text(state, 120);
  EXPECT_NE(text.find("[\x1b[32m===========>\x1b[0m"), text.npos);
  EXPECT_TRUE(text.ends_with("0:10 left"));
}

TEST(ProgressText, NamesCannotMoveTheCursor) {
  ProgressState state = half();
  state.label = "a\x1b[2Jb\n";
  state.what = "\r\x07";
  const std::string text = progress_text(state, 200);
  EXPECT_EQ(text.find_first_of("\x1b\r\n\x07"), text.npos);
}

// Tests run without a terminal.
TEST(Progress, IsSilentWhereNobodyLooks) {
  testing::internal::CaptureStderr();
  {
    Progress progress("work", 10, "steps");
    EXPECT_FALSE(progress.is_shown());
    for (int i = 0; i < 10; ++i) progress.add();
    progress.restart("more", 0);
    progress.set(3, "x");
    progress.set_total(4);
    progress.hide();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, TextBesideItIsUnchanged) {
  std::ostringstream out;
  std::unique_ptr<Progress> progress;
  AroundProgress around(out, progress);
  around.stream() << "a line\n" << 42;
  progress = std::make_unique<Progress>("work");
  around.stream() << " more" << std::flush;
  EXPECT_EQ(out.str(), "a line\n42 more");
  EXPECT_TRUE(around.is_at_line_start());  // no terminal: it does not matter
}

}  // namespace
}  // namespace tl::cli
