#include "view/log_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::view {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

TEST(ParseMetrics, FindsWhatScriptsWrite) {
  EXPECT_THAT(ParseMetrics("loss 0.21"), ElementsAre(Pair("loss", 0.21)));
  EXPECT_THAT(ParseMetrics("loss=0.21"), ElementsAre(Pair("loss", 0.21)));
  EXPECT_THAT(ParseMetrics("accuracy: 0.9"), ElementsAre(Pair("accuracy", 0.9)));
  EXPECT_THAT(ParseMetrics("accuracy: 97.3% of all"), ElementsAre(Pair("accuracy", 97.3)));
  EXPECT_THAT(ParseMetrics("step 12 of worker 3: loss 0.3, took 4s"), ElementsAre(Pair("loss", 0.3)));
  EXPECT_THAT(ParseMetrics("60/60 [=====] - 2s 3ms/step - loss: 1.5e-3 - val_accuracy: .75"),
              ElementsAre(Pair("loss", 0.0015), Pair("val_accuracy", 0.75)));
  EXPECT_THAT(ParseMetrics(R"({"epoch": 1, "train/loss": 2.5, "F1": 1})"),
              ElementsAre(Pair("train/loss", 2.5), Pair("F1", 1)));
  EXPECT_THAT(ParseMetrics("INFO:tensorflow:loss = 12, step = 100 (0.3 sec)"), ElementsAre(Pair("loss", 12)));
  EXPECT_THAT(ParseMetrics("The final loss is -0.5. Loss -0.5."), ElementsAre(Pair("Loss", -0.5)));
}

TEST(ParseMetrics, TakesAnyNameInALineThatSaysWhereItIs) {
  EXPECT_THAT(ParseMetrics("2024-05-01T10:00:00.123Z INFO  mean_0=0.0573 pass=0 step=12 graph=trainer-0"),
              ElementsAre(Pair("mean_0", 0.0573)));
  EXPECT_THAT(ParseMetrics("mean_0=0.0573"), IsEmpty());
  EXPECT_THAT(ParseMetrics("step 3 retries 4"), IsEmpty()) << "without an equals sign it may be anything";
}

TEST(ParseMetrics, TakesNothingThatIsNoMetric) {
  for (const std::string_view line :
       {"", "listening on port 8080", "epoch 1/10", "loss 3/4", "loss 0.3x", "loss nan", "loss inf",
        "no loss at all", "weight loss: none", "loss", "loss=", "closs 0.3", "2loss 0.3", "accuracy 10:30"})
    EXPECT_THAT(ParseMetrics(line), IsEmpty()) << line;
}

TEST(ParseMetrics, HasALimit) {
  std::string line = "step=1";
  for (int i = 0; i < 100; ++i) line += " m" + std::to_string(i) + "=1";
  EXPECT_THAT(ParseMetrics(line), SizeIs(16));
  EXPECT_THAT(ParseMetrics(std::string(100, 'x') + "_loss 1"), IsEmpty()) << "a name that nobody reads";
  EXPECT_THAT(ParseMetrics(std::string(10000, ' ') + "loss 1"), IsEmpty());
}

}  // namespace
}  // namespace trainyard::view
