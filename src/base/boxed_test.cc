#include "base/boxed.h"

#include <string>

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(Boxed, IsAsSmallAsAPointerAndNothingAtFirst) {
  const Boxed<std::string> box;
  EXPECT_EQ(sizeof box, sizeof(void*));
  EXPECT_FALSE(box.has_value());
  EXPECT_EQ(box, Boxed<std::string>());
}

TEST(Boxed, CopiesAndComparesItsValue) {
  const Boxed<std::string> box(std::string("text"));
  Boxed<std::string> copy = box;
  EXPECT_EQ(copy, box);
  EXPECT_NE(&*copy, &*box);
  copy = Boxed<std::string>(std::string("other"));
  EXPECT_NE(copy, box);
  EXPECT_EQ(*box, "text");
  EXPECT_EQ(box->size(), 4u);
  copy = Boxed<std::string>();
  EXPECT_NE(copy, box);
  EXPECT_FALSE(copy);
}

TEST(Boxed, MovesItsValue) {
  Boxed<std::string> box(std::string("text"));
  const Boxed<std::string> other = std::move(box);
  EXPECT_EQ(*other, "text");
}

}  // namespace
}  // namespace trainyard
