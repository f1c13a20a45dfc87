// Printing: exact texts, the options, and how little is read to print.
#include "tl/tensor/print.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>
#include <thread>

#include "support/on_every_device.h"

namespace tl {
namespace {

using namespace test;

template <class T = float>
Tensor counting(const Shape& shape, const Device& device = Device::cpu()) {
  std::vector<T> values(static_cast<std::size_t>(element_count("counting", shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i);
  return Tensor::from(values, shape, device);
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Print, AMatrixIsAlignedAndHasATrailer) {
  const Tensor x = Tensor::from<float>({0.5f, -1.25f, 2, 10.75f}, {2, 2});
  EXPECT_EQ(x.text(),
            "[[ 0.5000, -1.2500],\n"
            " [ 2.0000, 10.7500]]\n"
            "Tensor[[2, 2], f32]");
  std::ostringstream out;
  out << x;
  EXPECT_EQ(out.str(), x.text());
}

TEST(Print, WholeFloatsEndInADot) {
  EXPECT_EQ(counting({2, 3}).text(), "[[0., 1., 2.],\n [3., 4., 5.]]\nTensor[[2, 3], f32]");
}

TEST(Print, RankZeroIsTheBareValue) {
  EXPECT_EQ(Tensor::from<float>({2.5f}, {}).text(), "2.5000\nTensor[[], f32]");
  EXPECT_EQ(Tensor::from<std::int32_t>({-7}, {}).text(), "-7\nTensor[[], i32]");
}

TEST(Print, NothingIsAPairOfBrackets) {
  EXPECT_EQ(Tensor().text(), "[]\nTensor[[0], f32]");
  EXPECT_EQ(Tensor::zeros({2, 0, 3}, DType::I64).text(), "[]\nTensor[[2, 0, 3], i64]");
  EXPECT_EQ(to_text(Tensor::zeros({0}, DType::I64), {.threshold = 0, .edge_items = 0}),
            "[]\nTensor[[0], i64]");
}

TEST(Print, BlocksOfMoreDimensionsStandFurtherApart) {
  EXPECT_EQ(counting<std::uint8_t>({2, 2, 2}).text(),
            "[[[0, 1],\n"
            "  [2, 3]],\n"
            "\n"
            " [[4, 5],\n"
            "  [6, 7]]]\n"
            "Tensor[[2, 2, 2], u8]");
  EXPECT_EQ(counting<std::uint8_t>({2, 1, 2, 1}).text(),
            "[[[[0],\n"
            "   [1]]],\n"
            "\n"
            "\n"
            " [[[2],\n"
            "   [3]]]]\n"
            "Tensor[[2, 1, 2, 1], u8]");
}

TEST(Print, BoolsAreWords) {
  const std::uint8_t bytes[] = {1, 0, 7, 0};  // any byte but 0 is true
  const Tensor x = Tensor::from_bytes(std::as_bytes(std::span(bytes)), DType::Bool, {2, 2});
  EXPECT_EQ(x.text(), "[[ true, false],\n [ true, false]]\nTensor[[2, 2], bool]");
}

TEST(Print, IntegersKeepAll64Bits) {
  const Tensor x = Tensor::from<std::int64_t>({std::numeric_limits<std::int64_t>::max(), -1}, {2});
  EXPECT_EQ(x.text(), "[9223372036854775807,                  -1]\nTensor[[2], i64]");
  EXPECT_EQ(Tensor::from<std::uint32_t>({4294967295u}, {1}).text(),
            "[4294967295]\nTensor[[1], u32]");
}

TEST(Print, SmallFloatsPrintTheirValue) {
  EXPECT_EQ(Tensor::from<half>({half(0.1f), half(1.5f)}, {2}).text(),
            "[0.1000, 1.5000]\nTensor[[2], f16]");
  EXPECT_EQ(Tensor::from<bfloat16>({bfloat16(3.0f)}, {1}).text(), "[3.]\nTensor[[1], bf16]");
  EXPECT_EQ(Tensor::from<float8_e4m3>({float8_e4m3(0.5f), float8_e4m3(448.0f)}, {2}).text(),
            "[  0.5000, 448.0000]\nTensor[[2], f8e4m3]");
}

TEST(Print, SpecialValuesTakePartInTheAlignment) {
  EXPECT_EQ(Tensor::from<float>({1.5f, kNaN, kInf, -kInf}, {4}).text(),
            "[1.5000,    nan,    inf,   -inf]\nTensor[[4], f32]");
  EXPECT_EQ(Tensor::from<float>({1, kNaN}, {2}).text(), "[ 1., nan]\nTensor[[2], f32]");
  EXPECT_EQ(Tensor::from<float>({kNaN, kInf}, {2}).text(), "[nan, inf]\nTensor[[2], f32]");
  EXPECT_EQ(Tensor::from<float>({-0.0f, 0.0f}, {2}).text(), "[-0.,  0.]\nTensor[[2], f32]");
}

TEST(Print, WideRangesAreScientific) {
  EXPECT_EQ(Tensor::from<float>({1, 2000}, {2}).text(),
            "[1.0000e+00, 2.0000e+03]\nTensor[[2], f32]");
  EXPECT_EQ(Tensor::from<float>({1, 1000}, {2}).text(), "[   1., 1000.]\nTensor[[2], f32]");
  EXPECT_EQ(Tensor::from<float>({2e8f}, {1}).text(), "[2.0000e+08]\nTensor[[1], f32]");
  EXPECT_EQ(Tensor::from<double>({1e8}, {1}).text(), "[100000000.]\nTensor[[1], f64]");
  EXPECT_EQ(Tensor::from<double>({0.00009}, {1}).text(), "[9.0000e-05]\nTensor[[1], f64]");
  EXPECT_EQ(Tensor::from<double>({0.0001, 0}, {2}).text(), "[0.0001, 0.0000]\nTensor[[2], f64]");
  EXPECT_EQ(Tensor::from<double>({1e300, kInf}, {2}).text(),
            "[1.0000e+300,         inf]\nTensor[[2], f64]");
}

TEST(Print, ScientificCanBeForcedEitherWay) {
  const Tensor x = Tensor::from<double>({0.5, 2000.25}, {2});
  EXPECT_EQ(to_text(x, {.scientific = Scientific::Never}),
            "[   0.5000, 2000.2500]\nTensor[[2], f64]");
  EXPECT_EQ(
      to_text(Tensor::from<float>({1}, {1}), {.precision = 1, .scientific = Scientific::Always}),
      "[1.0e+00]\nTensor[[1], f32]");
  // The longest text a number can have.
  const std::string longest = to_text(Tensor::from<double>({-1.7e308 + 0.0, 0.5}, {2}),
                                      {.precision = 100, .scientific = Scientific::Never});
  EXPECT_EQ(longest.find("inf"), std::string::npos);
  EXPECT_GT(longest.size(), 800u);
}

TEST(Print, LongRowsAreBrokenBelowTheLineWidth) {
  EXPECT_EQ(to_text(counting<std::int32_t>({12}), {.line_width = 20}),
            "[ 0,  1,  2,  3,  4,\n"
            "  5,  6,  7,  8,  9,\n"
            " 10, 11]\n"
            "Tensor[[12], i32]");
  EXPECT_EQ(to_text(counting<std::int32_t>({2, 7}), {.line_width = 14}),
            "[[ 0,  1,  2,\n"
            "   3,  4,  5,\n"
            "   6],\n"
            " [ 7,  8,  9,\n"
            "  10, 11, 12,\n"
            "  13]]\n"
            "Tensor[[2, 7], i32]");
  // No room at all: one element on a line.
  EXPECT_EQ(to_text(counting<std::int32_t>({3}), {.line_width = 1}),
            "[0,\n 1,\n 2]\nTensor[[3], i32]");
  std::istringstream lines(to_text(counting({4, 200}), PrintOptions::full()));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Print, LargeTensorsAreSummarisedOnEveryLongDimension) {
  EXPECT_EQ(counting<std::int32_t>({1001}).text(),
            "[   0,    1,    2, ...,  998,  999, 1000]\nTensor[[1001], i32]");
  EXPECT_EQ(counting<std::int32_t>({40, 40}).text(),
            "[[   0,    1,    2, ...,   37,   38,   39],\n"
            " [  40,   41,   42, ...,   77,   78,   79],\n"
            " [  80,   81,   82, ...,  117,  118,  119],\n"
            " ...,\n"
            " [1480, 1481, 1482, ..., 1517, 1518, 1519],\n"
            " [1520, 1521, 1522, ..., 1557, 1558, 1559],\n"
            " [1560, 1561, 1562, ..., 1597, 1598, 1599]]\n"
            "Tensor[[40, 40], i32]");
  EXPECT_EQ(to_text(counting<std::int32_t>({3, 2, 3}), {.threshold = 2, .edge_items = 1}),
            "[[[ 0, ...,  2],\n"
            "  [ 3, ...,  5]],\n"
            "\n"
            " ...,\n"
            "\n"
            " [[12, ..., 14],\n"
            "  [15, ..., 17]]]\n"
            "Tensor[[3, 2, 3], i32]");
  EXPECT_EQ(to_text(counting({5, 5}), {.threshold = 1, .edge_items = 0}),
            "[...]\nTensor[[5, 5], f32]");
}

TEST(Print, OnlyWhatIsShownDecidesTheFormat) {
  std::vector<float> values(2000, 1.0f);
  values[1000] = 1e-30f;
  EXPECT_EQ(Tensor::from(values).text(), "[1., 1., 1., ..., 1., 1., 1.]\nTensor[[2000], f32]");
}

TEST(Print, ThresholdCountsElements) {
  EXPECT_EQ(counting({1000}).text().find("..."), std::string::npos);
  EXPECT_NE(counting({1001}).text().find("..."), std::string::npos);
  EXPECT_EQ(to_text(counting({1001}), PrintOptions::full()).find("..."), std::string::npos);
}

TEST(Print, ABroadcastTensorOfAnySizePrints) {
  const Tensor x = Tensor::from<float>({1.5f}, {1}).broadcast_as({std::int64_t{1} << 61});
  EXPECT_EQ(to_text(x, PrintOptions::brief()),
            "[1.50, 1.50, ..., 1.50, 1.50]\nTensor[[2305843009213693952], f32]");
}

TEST(Print, PresetsAreThoseOfTheManual) {
  EXPECT_EQ(PrintOptions::standard(), (PrintOptions{4, 1000, 3, 80, Scientific::Auto}));
  EXPECT_EQ(PrintOptions::brief(), (PrintOptions{2, 1000, 2, 80, Scientific::Auto}));
  EXPECT_EQ(PrintOptions::full(),
            (PrintOptions{4, std::numeric_limits<std::int64_t>::max(), 3, 80, Scientific::Auto}));
}

TEST(Print, OptionsAreKeptAndChecked) {
  ASSERT_EQ(print_options(), PrintOptions::standard());
  set_print_precision(2);
  set_print_threshold(5);
  set_print_edge_items(1);
  set_print_line_width(40);
  set_print_scientific(Scientific::Never);
  EXPECT_EQ(print_options(), (PrintOptions{2, 5, 1, 40, Scientific::Never}));
  EXPECT_EQ(Tensor::from<float>({0.5f, 1, 2, 3, 4, 5000}, {6}).text(),
            "[   0.50, ..., 5000.00]\nTensor[[6], f32]");
  expect_error(ErrorKind::BadArgument, "print options: precision cannot be -1",
               [] { set_print_precision(-1); });
  expect_error(ErrorKind::BadArgument, "print options: precision cannot be 101",
               [] { set_print_precision(101); });
  expect_error(ErrorKind::BadArgument, "print options: threshold cannot be -1",
               [] { set_print_threshold(-1); });
  expect_error(ErrorKind::BadArgument, "print options: edge items cannot be -2",
               [] { set_print_edge_items(-2); });
  expect_error(ErrorKind::BadArgument, "print options: line width cannot be 0",
               [] { set_print_line_width(0); });
  EXPECT_EQ(print_options(), (PrintOptions{2, 5, 1, 40, Scientific::Never}));
  set_print_options(PrintOptions::standard());
  expect_error(ErrorKind::BadArgument, "line width", [] { to_text(Tensor(), {.line_width = -1}); });
}

TEST(Print, ThreadsMayPrintWhileOptionsChange) {
  const Tensor x = counting({4, 4});
  std::thread changes([] {
    for (int i = 0; i < 200; ++i) set_print_precision(i % 5);
  });
  for (int i = 0; i < 200; ++i) EXPECT_EQ(x.text().substr(0, 2), "[[");
  changes.join();
  set_print_options(PrintOptions::standard());
}

TEST(Print, DebugFormIsOneLine) {
  EXPECT_EQ(to_debug_text(Tensor::from<float>({2.5f}, {})), "Tensor[2.5; f32]");
  EXPECT_EQ(to_debug_text(Tensor::from<float>({0.1f, kNaN, -kInf, 1}, {4})),
            "Tensor[0.1, nan, -inf, 1; f32]");
  EXPECT_EQ(to_debug_text(Tensor::from<double>({0.1}, {1})), "Tensor[0.1; f64]");
  EXPECT_EQ(to_debug_text(counting<std::int64_t>({9})), "Tensor[0, 1, 2, 3, 4, 5, 6, 7, 8; i64]");
  EXPECT_EQ(to_debug_text(counting<std::int64_t>({10})), "Tensor[dims 10; i64]");
  EXPECT_EQ(to_debug_text(counting({2, 3})), "Tensor[dims 2, 3; f32]");
  EXPECT_EQ(to_debug_text(Tensor()), "Tensor[; f32]");
}

class PrintOn : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(PrintOn);

TEST_P(PrintOn, TheTrailerNamesAGpu) {
  const std::string suffix = device().is_cpu() ? "" : ", " + device().text();
  const Tensor x = counting({2, 2}, device());
  EXPECT_EQ(x.text(), "[[0., 1.],\n [2., 3.]]\nTensor[[2, 2], f32" + suffix + "]");
  EXPECT_EQ(to_debug_text(x), "Tensor[dims 2, 2; f32" + suffix + "]");
  EXPECT_EQ(x.t().text(), "[[0., 2.],\n [1., 3.]]\nTensor[[2, 2], f32" + suffix + "]");
}

TEST_P(PrintOn, AViewPrintsWhatItSees) {
  const Tensor x = counting<std::int32_t>({200, 300}, device());
  const std::string wanted =
      to_text(counting<std::int32_t>({200, 300}).t().narrow(0, 7, 280).slice(1, 1, 199, 2));
  const std::string got = to_text(x.t().narrow(0, 7, 280).slice(1, 1, 199, 2));
  EXPECT_EQ(got.substr(0, got.find('\n')), wanted.substr(0, wanted.find('\n')));
}

TEST_P(PrintOn, OnlyWhatIsShownIsRead) {
  const Tensor x = counting<std::int32_t>({1000, 1000}, device());
  const DriverCalls before = device().driver_calls();
  EXPECT_NE(x.text().find("[999000, 999001, 999002, ..., 999997, 999998, 999999]]"),
            std::string::npos);
  const DriverCalls after = device().driver_calls();
  EXPECT_LE(after.downloads - before.downloads, 4u);  // the four corners
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.launches, before.launches);
}

}  // namespace
}  // namespace tl
