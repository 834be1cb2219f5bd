#include <random>

#include <gtest/gtest.h>

#include "apiserver/patch/patch.h"
#include "apiserver/patch/patch_testing.h"
#include "apiserver/patch/same_value.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

std::string Merged(const char* object, const char* patch) {
  Document document = J(object);
  ApplyMergePatch(document, J(patch));
  return PrintJson(document);
}

TEST(MergePatch, GivesWhatTheAppendixOfTheRfcSays) {
  EXPECT_EQ(Merged(R"({"a":"b"})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(Merged(R"({"a":"b"})", R"({"b":"c"})"), R"({"a":"b","b":"c"})");
  EXPECT_EQ(Merged(R"({"a":"b"})", R"({"a":null})"), R"({})");
  EXPECT_EQ(Merged(R"({"a":"b","b":"c"})", R"({"a":null})"), R"({"b":"c"})");
  EXPECT_EQ(Merged(R"({"a":["b"]})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(Merged(R"({"a":"c"})", R"({"a":["b"]})"), R"({"a":["b"]})");
  EXPECT_EQ(Merged(R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})"), R"({"a":{"b":"d"}})");
  EXPECT_EQ(Merged(R"({"a":[{"b":"c"}]})", R"({"a":[1]})"), R"({"a":[1]})");
  EXPECT_EQ(Merged(R"(["a","b"])", R"(["c","d"])"), R"(["c","d"])");
  EXPECT_EQ(Merged(R"({"a":"b"})", R"(["c"])"), R"(["c"])");
  EXPECT_EQ(Merged(R"({"a":"foo"})", "null"), "null");
  EXPECT_EQ(Merged(R"({"a":"foo"})", R"("bar")"), R"("bar")");
  EXPECT_EQ(Merged(R"({"e":null})", R"({"a":1})"), R"({"e":null,"a":1})");
  EXPECT_EQ(Merged(R"([1,2])", R"({"a":"b","c":null})"), R"({"a":"b"})");
  EXPECT_EQ(Merged(R"({})", R"({"a":{"bb":{"ccc":null}}})"), R"({"a":{"bb":{}}})");
}

TEST(MergePatch, KeepsTheOrderOfWhatItDoesNotTouch) {
  EXPECT_EQ(Merged(R"({"a":1,"b":2,"c":3,"d":4})", R"({"b":null,"c":5})"), R"({"a":1,"c":5,"d":4})");
}

// ---- a patch made of two documents leads from the one to the other

class Documents {
 public:
  explicit Documents(unsigned seed) : random_(seed) {}

  // Without nulls: a merge patch cannot say them.
  Document Make(int depth) {
    const int kind = Pick(depth > 0 ? 6 : 4);
    if (kind == 0) return Pick(2) == 0;
    if (kind == 1) return Pick(100);
    if (kind == 2) return "text";
    if (kind == 3) return 0.5 * Pick(9);
    if (kind == 4) {
      Array array;
      for (int i = Pick(4); i > 0; --i) array.push_back(Make(depth - 1));
      return array;
    }
    return MakeObject(depth);
  }

  Object MakeObject(int depth) {
    Object object;
    for (int i = Pick(6); i > 0; --i)
      object[std::string(1, static_cast<char>('a' + Pick(7)))] = Make(depth - 1);
    return object;
  }

 private:
  int Pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  std::mt19937 random_;
};

Document DiffOf(const Document& from, const Document& to) {
  if (!from.is_object() || !to.is_object()) return to;
  Object patch;
  for (const auto& member : from.get_object()) {
    if (!to.get_object().contains(member.key())) patch[member.key()] = nullptr;
  }
  for (const auto& member : to.get_object()) {
    const Document* old = from.get_object().if_contains(member.key());
    if (old == nullptr) {
      patch[member.key()] = member.value();
    } else if (!SameValue(*old, member.value())) {
      patch[member.key()] = DiffOf(*old, member.value());
    }
  }
  return patch;
}

TEST(MergePatch, RemovesManyKeysInOnePass) {
  Object object;
  Object patch;
  for (int i = 0; i < 60'000; ++i) {
    object[StrCat("key-", i)] = i;
    if (i % 2 == 0) patch[StrCat("key-", i)] = nullptr;
  }
  Document document = std::move(object);
  ApplyMergePatch(document, patch);
  EXPECT_EQ(document.get_object().size(), 30'000U);
  EXPECT_EQ(Key(*document.get_object().begin()), "key-1");
}

TEST(MergePatchProperty, ThePatchFromOneDocumentToAnotherGivesTheOther) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Documents documents(seed);
    const Document from = documents.MakeObject(4);
    const Document to = documents.MakeObject(4);
    Document patched = from;
    ApplyMergePatch(patched, DiffOf(from, to));
    ASSERT_TRUE(SameValue(patched, to))
        << "seed " << seed << ": " << PrintJson(patched) << " for " << PrintJson(to);
    ApplyMergePatch(patched, DiffOf(from, to));
    ASSERT_TRUE(SameValue(patched, to)) << "seed " << seed << ": a second time changes it";
  }
}

}  // namespace
}  // namespace trainyard::apiserver
