#include "kv/key_index.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kv {
namespace {

using ::testing::ElementsAre;

Version At(Revision revision, std::int64_t version = 1) {
  return {.mod_revision = revision, .create_revision = revision, .version = version};
}
Version EndAt(Revision revision) { return {.mod_revision = revision, .deleted = true}; }

std::vector<std::string> KeysAt(const KeyIndex& index, Revision revision) {
  std::vector<std::string> keys;
  index.ForEach(KeyRange::From(""), revision, [&](std::string_view key, const Version&) {
    keys.emplace_back(key);
    return true;
  });
  return keys;
}

std::vector<Revision> Revisions(const std::vector<Version>& versions) {
  std::vector<Revision> revisions;
  for (const Version& version : versions) revisions.push_back(version.mod_revision);
  return revisions;
}

TEST(KeyIndex, ShowsEachRevisionAsItWas) {
  KeyIndex index;
  index.Add("a", At(2));
  index.Add("b", At(3));
  index.Add("a", EndAt(4));
  index.Add("a", At(5));
  EXPECT_THAT(KeysAt(index, 1), ElementsAre());
  EXPECT_THAT(KeysAt(index, 2), ElementsAre("a"));
  EXPECT_THAT(KeysAt(index, 3), ElementsAre("a", "b"));
  EXPECT_THAT(KeysAt(index, 4), ElementsAre("b"));
  EXPECT_THAT(KeysAt(index, 9), ElementsAre("a", "b"));
  EXPECT_EQ(index.Find("a", 3)->mod_revision, 2);
  EXPECT_EQ(index.Find("a", 4), nullptr);
}

TEST(KeyIndex, CompactsToWhatAReaderAtThatRevisionNeeds) {
  KeyIndex index;
  index.Add("kept", At(2));
  index.Add("kept", At(3));
  index.Add("kept", At(7));
  index.Add("ended", At(4));
  index.Add("ended", EndAt(5));
  index.Add("ends now", At(2));
  index.Add("ends now", EndAt(6));
  EXPECT_THAT(Revisions(index.Compact(6)), testing::UnorderedElementsAre(2, 4, 5, 2));
  EXPECT_THAT(KeysAt(index, 6), ElementsAre("kept"));
  EXPECT_EQ(index.Find("kept", 6)->mod_revision, 3);
  EXPECT_EQ(index.Find("kept", 7)->mod_revision, 7);
  // A watch that starts at the revision compacted to still sees the end that happened there.
  std::vector<std::string> changes;
  index.ForEachChange(KeyRange::From(""), 6,
                      [&](std::string_view key, const Version& version, const Version*) {
                        changes.push_back(std::string(key) + (version.deleted ? " ended" : ""));
                      });
  EXPECT_THAT(changes, ElementsAre("ends now ended", "kept"));
}

TEST(KeyIndex, TakesBackTheNewestVersion) {
  KeyIndex index;
  index.Add("a", At(2));
  index.Add("a", At(3, 2));
  index.RemoveNewest("a");
  EXPECT_EQ(index.Find("a", 9)->mod_revision, 2);
  index.RemoveNewest("a");
  EXPECT_EQ(index.size(), 0u);
}

TEST(KeyIndex, TellsAChangeWithWhatWasBefore) {
  KeyIndex index;
  index.Add("a", At(2));
  index.Add("a", At(3));
  index.Add("a", EndAt(4));
  index.Add("a", At(5));
  std::vector<std::pair<Revision, Revision>> changes;
  index.ForEachChange(
      KeyRange::Key("a"), 3, [&](std::string_view, const Version& version, const Version* before) {
        changes.emplace_back(version.mod_revision, before == nullptr ? 0 : before->mod_revision);
      });
  EXPECT_THAT(changes, ElementsAre(std::pair(3, 2), std::pair(4, 3), std::pair(5, 0)));
}

TEST(KeyIndex, MovesOnlyTheVersionThatIsStillHere) {
  KeyIndex index;
  index.Add("a", At(2));
  EXPECT_TRUE(index.Relocate("a", 2, {.segment = 7}));
  EXPECT_EQ(index.Find("a", 2)->location.segment, 7u);
  EXPECT_FALSE(index.Relocate("a", 3, {.segment = 8}));
  EXPECT_FALSE(index.Relocate("b", 2, {.segment = 8}));
}

}  // namespace
}  // namespace trainyard::kv
