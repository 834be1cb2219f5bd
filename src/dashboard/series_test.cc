#include "dashboard/log_plots.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::dashboard {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(Series, KeepsItsFirstAndLastPointWhateverComes) {
  Series series(10);
  for (int i = 0; i < 1000; ++i) series.Add(i, i * 2);
  EXPECT_LE(series.points().size(), 11);
  EXPECT_GE(series.points().size(), 5);
  EXPECT_THAT(series.points().front(), Pair(0, 0));
  EXPECT_EQ(series.points().back().second, 1998) << "the last value, though the gap is not over";
  for (std::size_t i = 1; i < series.points().size(); ++i)
    EXPECT_LT(series.points()[i - 1].first, series.points()[i].first);
}

TEST(Series, TakesOnlyChangesWhereThatIsAsked) {
  Series series;
  for (const double value : {1, 1, 2, 2, 2, 1})
    series.Add(static_cast<double>(series.points().size()), value, true);
  EXPECT_THAT(series.points(), ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 1)));
}

}  // namespace
}  // namespace trainyard::dashboard
