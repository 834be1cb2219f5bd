#include "kube/shared_text.h"

#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "gtest/gtest.h"

namespace trainyard::kube {
namespace {

TEST(SharedText, KeepsEqualTextsOnce) {
  const std::size_t before = SharedText::CountAll();
  {
    const SharedText a("only in this test");
    const SharedText b(std::string("only in ") + "this test");
    EXPECT_EQ(a.view().data(), b.view().data());
    EXPECT_EQ(a, b);
    EXPECT_EQ(SharedText::CountAll(), before + 1);
  }
  EXPECT_EQ(SharedText::CountAll(), before) << "and frees them";
}

TEST(SharedText, ComparesAsText) {
  const SharedText a("a");
  const SharedText b("b");
  EXPECT_LT(a, b);
  EXPECT_NE(a, b);
  EXPECT_EQ(a, "a");
  EXPECT_TRUE(SharedText("").empty());
  EXPECT_EQ(SharedText(""), SharedText());
  EXPECT_EQ(SharedText().view(), "");
}

TEST(SharedText, OutlivesTheOneItWasCopiedFrom) {
  SharedText copy;
  {
    const SharedText original("the original");
    copy = original;
  }
  EXPECT_EQ(copy, "the original");
  const SharedText moved(std::move(copy));
  EXPECT_EQ(moved, "the original");
  copy = moved;
  copy = *&copy;
  EXPECT_EQ(copy, "the original");
}

TEST(SharedText, IsTakenAndDroppedByManyThreadsAtOnce) {
  const std::size_t before = SharedText::CountAll();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 20000; ++i) {
        const std::string text = StrCat("contended ", i % 3);
        const SharedText mine(text);
        const SharedText copy(mine);  // NOLINT: the copy is the point
        ASSERT_EQ(copy.view(), text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(SharedText::CountAll(), before);
}

}  // namespace
}  // namespace trainyard::kube
