#include "apiserver/table.h"

#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

TEST(Tables, ShowNoMoreThanTheirBudgetPaysFor) {
  const ResourceInfo resource{.custom = true};
  ServedVersion version;
  for (int i = 0; i < 100; ++i)
    version.columns.push_back({.name = "Spec", .type = "string", .json_path = ".spec.text"});
  version.columns.push_back({.name = "All", .type = "string", .json_path = ".spec"});
  const auto cells = [&](std::size_t size) {
    const Document object =
        Object{{"metadata", Object{{"name", "x"}}}, {"spec", Object{{"text", std::string(size, 'x')}}}};
    Budget budget(std::size_t{64} << 10);
    return PrintJson(CellsOf(resource, version, object, absl::UnixEpoch(), budget));
  };
  EXPECT_NE(cells(10).find(R"("{\"text\":\"xxxxxxxxxx\"}")"), std::string::npos);
  EXPECT_EQ(cells(100).find("<too large>"), std::string::npos);
  for (const std::size_t size : {2'000, 60'000, 1'000'000}) {
    EXPECT_LT(cells(size).size(), std::size_t{70} << 10) << size;
    EXPECT_NE(cells(size).find("<too large>"), std::string::npos) << size;
  }
}

TEST(Tables, AllRowsDrawFromOneBudget) {
  const ResourceInfo resource{.custom = true};
  ServedVersion version;
  for (int i = 0; i < 100; ++i)
    version.columns.push_back({.name = "Spec", .type = "string", .json_path = ".spec.text"});
  const Document object =
      Object{{"metadata", Object{{"name", "x"}}}, {"spec", Object{{"text", std::string(600, 'x')}}}};
  Budget budget;
  const std::string table =
      TableText(resource, version, std::vector<Document>(1000, object), "{}", {}, absl::UnixEpoch(), budget);
  EXPECT_LT(table.size(), Budget::kBytes + (std::size_t{4} << 20)) << "60 MB would have been shown";
}

}  // namespace
}  // namespace trainyard::apiserver
