#include "apiserver/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::apiserver {
namespace {

using ::testing::HasSubstr;

TEST(PrintRefusal, IsAStatusWithTheReasonOfItsCode) {
  const std::pair<int, const char*> cases[] = {{400, "BadRequest"},
                                               {401, "Unauthorized"},
                                               {408, "Timeout"},
                                               {413, "RequestEntityTooLarge"},
                                               {415, "UnsupportedMediaType"},
                                               {431, "BadRequest"},
                                               {500, "InternalError"}};
  for (const auto& [code, reason] : cases) {
    const kube::Response refusal = PrintRefusal(code, "it is not to be");
    EXPECT_EQ(refusal.code, code);
    EXPECT_THAT(refusal.body, HasSubstr(R"("kind":"Status")"));
    EXPECT_THAT(refusal.body, HasSubstr(std::string(R"("reason":")") + reason + "\""));
    EXPECT_THAT(refusal.body, HasSubstr(R"("message":"it is not to be")"));
  }
}

}  // namespace
}  // namespace trainyard::apiserver
