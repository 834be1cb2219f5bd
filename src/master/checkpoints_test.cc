#include "master/checkpoints.h"

#include <cstring>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/job_testing.h"

namespace trainyard::master {
namespace {

using testing::HasSubstr;

ElasticCheckpoint Some(std::int64_t version, const std::string& job = "a") {
  ElasticCheckpoint checkpoint{.version = version,
                               .update = "how",
                               .startup = "begin\nhere",
                               .shared = {"w"},
                               .job = job,
                               .name = "n",
                               .evaluated = 3,
                               .metrics = {{"accuracy", 0.5}}};
  graph::Tensor tensor(graph::DataType::kFloat32, {3});
  for (int i = 0; i < 3; ++i) tensor.data<float>()[i] = 0.1F * static_cast<float>(version + i);
  checkpoint.variables.emplace("w", tensor);
  tasks::Queue queue;
  queue.Apply(tasks::Begin{.kind = tasks::Kind::kTraining,
                           .options = {.records = 9, .records_per_task = 2, .seed = 3}});
  queue.Apply(tasks::Lease{1});
  checkpoint.queue = queue.Save();
  return checkpoint;
}

std::vector<std::int64_t> VersionsIn(const std::string& folder) {
  std::vector<std::int64_t> versions;
  const auto found = ListCheckpoints(folder);
  for (const FoundCheckpoint& one : found.value_or(std::vector<FoundCheckpoint>()))
    versions.push_back(one.step);
  return versions;
}

TEST(ElasticCheckpoint, IsRestoredToTheLastBit) {
  const ps::Folder folder;
  const ElasticCheckpoint written = Some(7);
  ASSERT_TRUE(WriteElasticCheckpoint(folder.path(), written, 0).ok());
  const auto read = ReadNewestCheckpoint(folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->version, 7);
  EXPECT_EQ(read->update, written.update);
  EXPECT_EQ(read->startup, written.startup);
  EXPECT_EQ(read->shared, written.shared);
  EXPECT_EQ(read->evaluated, 3);
  EXPECT_THAT(read->metrics, testing::ElementsAre(tasks::Metric{"accuracy", 0.5}));
  EXPECT_EQ(read->queue, written.queue);
  EXPECT_EQ(std::memcmp(read->variables.at("w").raw(), written.variables.at("w").raw(), 12), 0);
}

TEST(ElasticCheckpoint, IsKeptAsLongAsItIsAmongTheNewest) {
  const ps::Folder folder;
  for (const std::int64_t version : {1, 2, 3, 10})
    ASSERT_TRUE(WriteElasticCheckpoint(folder.path(), Some(version), 2).ok());
  EXPECT_THAT(VersionsIn(folder.path()), testing::ElementsAre(3, 10));
  for (const std::int64_t version : {11, 12, 13})
    ASSERT_TRUE(WriteElasticCheckpoint(folder.path(), Some(version), 0).ok());
  EXPECT_EQ(VersionsIn(folder.path()).size(), 5);
}

TEST(ElasticCheckpoint, ThatIsDamagedIsPassedOver) {
  const ps::Folder folder;
  ASSERT_TRUE(WriteElasticCheckpoint(folder.path(), Some(1), 0).ok());
  ASSERT_TRUE(WriteElasticCheckpoint(folder.path(), Some(2), 0).ok());
  const std::string newest = ListCheckpoints(folder.path())->back().file;
  std::fstream file(newest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-20, std::ios::end);
  file.put('\xff');
  file.close();
  EXPECT_EQ(ReadNewestCheckpoint(folder.path())->version, 1);
  EXPECT_THAT(std::string(ReadNewestCheckpoint(newest).status().message()), HasSubstr(newest));
}

TEST(ElasticCheckpoint, OfAnotherRunIsNotTakenForOnesOwn) {
  const ps::Folder folder;
  ASSERT_TRUE(WriteElasticCheckpoint(folder.path(), Some(1, "mine"), 0).ok());
  ASSERT_TRUE(WriteElasticCheckpoint(folder.path(), Some(9, "theirs"), 0).ok());
  EXPECT_EQ(ReadNewestCheckpoint(folder.path(), "mine")->version, 1);
  EXPECT_TRUE(absl::IsNotFound(ReadNewestCheckpoint(folder.path(), "nobody's").status()));
}

}  // namespace
}  // namespace trainyard::master
