#include "ps/output_lines.h"

#include "gtest/gtest.h"

namespace trainyard::ps {
namespace {

TEST(PrintOutputLine, HasWhatIsOneNumber) {
  EXPECT_EQ(PrintOutputLine({.values = {{.name = "mean_0", .dims = {1}, .values = {0.0573}},
                                        {.name = "scores", .dims = {2}, .values = {1, 2}},
                                        {.name = "acc", .dims = {}, .values = {1e-9}}}}),
            "mean_0=0.0573 acc=1e-09");
  EXPECT_EQ(PrintOutputLine({}), "");
}

TEST(OutputLines, WritesTheFirstTheLastAndOneASecond) {
  ManualClock clock;
  testing::internal::CaptureStderr();
  {
    OutputLines lines(clock, "trainer-0");
    for (std::int64_t step = 0; step < 25; ++step) {
      lines.Add({.pass = 1, .step = step, .values = {{.name = "loss", .dims = {1}, .values = {0.5}}}});
      clock.Advance(absl::Milliseconds(100));
    }
  }
  const std::string written = testing::internal::GetCapturedStderr();
  std::vector<std::string> steps;
  for (std::size_t at = written.find("step="); at != std::string::npos; at = written.find("step=", at + 1))
    steps.push_back(written.substr(at, written.find(' ', at) - at));
  EXPECT_EQ(steps, (std::vector<std::string>{"step=0", "step=10", "step=20", "step=24"})) << written;
  EXPECT_NE(written.find("loss=0.5 pass=1 step=0 graph=trainer-0"), std::string::npos) << written;
}

}  // namespace
}  // namespace trainyard::ps
