#include "apiserver/json_path.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace trainyard::apiserver {
namespace {

std::string Found(std::string_view path, std::string_view json) {
  const auto parsed = JsonPath::Parse(path);
  if (!parsed.ok()) return "error";
  const Document document = *ParseJson(json);
  std::string all;
  for (const Document* found : parsed->FindAll(document))
    StrAppend(all, all.empty() ? "" : " ", PrintJson(*found));
  return all;
}

TEST(JsonPath, FindsWhatColumnsAskFor) {
  const std::string_view json =
      R"({"a":{"b.c":1,"d":[{"type":"Ready","status":"True"},{"type":"Other","status":"False","n":2}]},"s":"x"})";
  EXPECT_EQ(Found(".s", json), R"("x")");
  EXPECT_EQ(Found("{.s}", json), R"("x")");
  EXPECT_EQ(Found("$.s", json), R"("x")");
  EXPECT_EQ(Found(".a['b.c']", json), "1");
  EXPECT_EQ(Found(R"(.a.b\.c)", json), "1");
  EXPECT_EQ(Found(".a.d[0].type", json), R"("Ready")");
  EXPECT_EQ(Found(".a.d[-1].type", json), R"("Other")");
  EXPECT_EQ(Found(".a.d[-1:].type", json), R"("Other")");
  EXPECT_EQ(Found(".a.d[*].status", json), R"("True" "False")");
  EXPECT_EQ(Found(R"(.a.d[?(@.type=="Ready")].status)", json), R"("True")");
  EXPECT_EQ(Found(R"(.a.d[?(@.type != 'Ready')].status)", json), R"("False")");
  EXPECT_EQ(Found(".a.d[?(@.n==2)].type", json), R"("Other")");
  EXPECT_EQ(Found(".a.d[?(@.n)].type", json), R"("Other")");
  EXPECT_EQ(Found(".missing.x[3]", json), "");
}

TEST(JsonPath, RefusesWhatItCannotRead) {
  for (const char* path :
       {"a", ".a[", ".a[x]", ".a[0:2]", "..a", ".a[?(@.b", ".a[?(@.b==)]", ".a['b", ".", ".a[?(@.b<3)]"}) {
    EXPECT_FALSE(JsonPath::Parse(path).ok()) << path;
  }
}

}  // namespace
}  // namespace trainyard::apiserver
