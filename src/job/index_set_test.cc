#include "gtest/gtest.h"
#include "job/job_status.h"

namespace trainyard::job {
namespace {

IndexSet Set(std::string_view text) { return IndexSet::Parse(text).value(); }

TEST(IndexSet, JoinsNeighboursInWhateverOrderTheyCome) {
  IndexSet set;
  for (const int index : {5, 1, 3, 2, 4, 9, 4}) set.Insert(index);
  EXPECT_EQ(set.Print(), "1-5,9");
  EXPECT_EQ(set.Count(), 6);
}

TEST(IndexSet, IsReadAsItIsPrinted) {
  for (const std::string_view text : {"", "0", "0-2", "1,3-5,7", "0-9999"})
    EXPECT_EQ(Set(text).Print(), text);
}

TEST(IndexSet, KnowsWhatIsInIt) {
  const IndexSet set = Set("1,3-5");
  for (const int index : {1, 3, 4, 5}) EXPECT_TRUE(set.Contains(index)) << index;
  for (const int index : {0, 2, 6}) EXPECT_FALSE(set.Contains(index)) << index;
}

TEST(IndexSet, ForgetsWhatIsBeyondTheEnd) {
  IndexSet set = Set("1,3-5,8");
  set.Truncate(5);
  EXPECT_EQ(set.Print(), "1,3-4");
  set.Truncate(0);
  EXPECT_EQ(set, IndexSet());
}

TEST(IndexSet, DoesNotReadWhatIsNone) {
  for (const std::string_view text :
       {",", "a", "-1", "3-1", "1,1", "2,1", "1-2,3", "1,", "1-", "99999999999"}) {
    EXPECT_FALSE(IndexSet::Parse(text)) << text;
  }
}

}  // namespace
}  // namespace trainyard::job
