// What holds for every schema and every value, tried on many of both.
#include <random>

#include "apiserver/schema/builtin_validation.h"
#include "apiserver/schema/computed_defaults.h"
#include "apiserver/schema/schema_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

using testing::IsEmpty;

// Makes values that mostly fit a schema, and now and then do not.
class Source {
 public:
  explicit Source(unsigned seed) : engine_(seed) {}

  Document ValueFor(const Schema& schema, int depth) {
    if (Chance(20)) return AnyValue(2);
    switch (schema.type) {
      case SchemaType::kObject:
        return ObjectFor(schema, depth);
      case SchemaType::kArray:
        return ArrayFor(schema, depth);
      case SchemaType::kString:
        return TextFor(schema);
      case SchemaType::kInteger:
        return Document(static_cast<std::int64_t>(Below(3) == 0 ? engine_() : Below(100)));
      case SchemaType::kNumber:
        return Document(0.5 * Below(10));
      case SchemaType::kBoolean:
        return Document(Below(2) == 0);
      case SchemaType::kAny:
        return AnyValue(2);
      case SchemaType::kIntOrString:
        return Below(2) == 0 ? Document("web") : Document(static_cast<std::int64_t>(Below(70'000)));
    }
    return nullptr;
  }

 private:
  bool Chance(unsigned one_in) { return Below(one_in) == 0; }
  unsigned Below(unsigned bound) { return static_cast<unsigned>(engine_() % bound); }

  Document TextFor(const Schema& schema) {
    if (!schema.one_of_values.empty() && !Chance(6))
      return schema.one_of_values[Below(static_cast<unsigned>(schema.one_of_values.size()))];
    if (schema.format == "date-time") return Document("2024-02-03T04:05:06Z");
    if (schema.format == "quantity") return Document(Below(2) == 0 ? "1500m" : "2Gi");
    constexpr std::string_view kTexts[] = {"", "a", "name-1", "Ä\"\\", "x y", "/path/..", "10.0.0.1", "YWI="};
    return Document(kTexts[Below(std::size(kTexts))]);
  }

  Document ObjectFor(const Schema& schema, int depth) {
    Object object;
    for (const auto& [key, below] : schema.properties) {
      if (depth > 0 ? Below(3) == 0 : Chance(12)) object[key] = ValueFor(*below, depth - 1);
    }
    for (const std::string& key : schema.required) {
      if (!Chance(8)) object[key] = ValueFor(*schema.properties.at(key), depth - 1);
    }
    if (schema.additional) object["key" + std::to_string(Below(5))] = ValueFor(*schema.additional, depth - 1);
    if (Chance(5)) object["unknown"] = AnyValue(2);
    return object;
  }

  Document ArrayFor(const Schema& schema, int depth) {
    Array array;
    for (unsigned count = Below(3); count > 0 && schema.items; --count)
      array.push_back(ValueFor(*schema.items, depth - 1));
    return array;
  }

  Document AnyValue(int depth) {
    switch (Below(depth > 0 ? 8 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return Document(true);
      case 2:
        return Document(static_cast<std::int64_t>(engine_()));
      case 3:
        return Document(1e300);
      case 4:
        return Document(~std::uint64_t{0});
      case 5:
        return Document("text");
      case 6:
        return Array{AnyValue(depth - 1), AnyValue(depth - 1)};
      default:
        return Object{{"a", AnyValue(depth - 1)}, {"name", AnyValue(depth - 1)}};
    }
  }

  std::mt19937_64 engine_;
};

std::vector<std::pair<std::string, SchemaPtr>> Schemas() {
  std::vector<std::pair<std::string, SchemaPtr>> schemas;
  for (const auto& [name, schema] : BuiltInKinds().types()) schemas.emplace_back(name, schema);
  schemas.emplace_back(
      "custom", SchemaOf(R"({"type":"object","properties":{"spec":{"type":"object","default":{},"properties":{
      "a":{"type":"integer","default":1,"nullable":true},"b":{"type":"array","items":{"type":"object","default":{"c":"x"},"properties":{
      "c":{"type":"string","enum":["x","y"]},"d":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}}}},
      "e":{"x-kubernetes-preserve-unknown-fields":true,"type":"object","properties":{"f":{"type":"object","properties":{"g":{"type":"string","default":"h"}}}}},
      "i":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}})"));
  return schemas;
}

TEST(Schemas, HoldTheirPromisesForEveryValue) {
  for (const auto& [name, schema] : Schemas()) {
    for (unsigned seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(StrCat(name, " seed ", seed));
      const Document value = Source(seed).ValueFor(*schema, 4);
      const bool clean = Validate(*schema, value).empty();

      Document pruned = value;
      Prune(*schema, pruned);
      Document again = pruned;
      EXPECT_THAT(Prune(*schema, again), IsEmpty());
      EXPECT_EQ(again, pruned);
      if (clean) {
        EXPECT_THAT(Validate(*schema, pruned), IsEmpty());
      }

      Document filled = pruned;
      EXPECT_TRUE(ApplyDefaults(*schema, filled));
      again = filled;
      EXPECT_TRUE(ApplyDefaults(*schema, again));
      EXPECT_EQ(again, filled) << PrintJson(value);
      EXPECT_THAT(Prune(*schema, again), IsEmpty());

      Canonicalize(*schema, filled);
      again = filled;
      Canonicalize(*schema, again);
      EXPECT_EQ(again, filled);
    }
  }
}

TEST(Kinds, SurviveEveryValue) {
  for (const KindInfo& kind : BuiltInKinds().kinds()) {
    for (unsigned seed = 0; seed < 150; ++seed) {
      Document object = Source(seed).ValueFor(*kind.schema, 6);
      const Document before = object;
      Prune(*kind.schema, object);
      EXPECT_TRUE(ApplyDefaults(*kind.schema, object));
      ApplyComputedDefaults(kind, object);
      PrepareForCreate(kind, object);
      EXPECT_LE(ValidateCreate(kind, object).size(), 16U);
      EXPECT_LE(ValidateUpdate(kind, before, object).size(), 16U);
      PrepareForUpdate(kind, before, object);
    }
  }
}

TEST(Kinds, CompleteASoundObjectOnceAndForAll) {
  int sound = 0;
  for (const KindInfo& kind : BuiltInKinds().kinds()) {
    for (unsigned seed = 0; seed < 150; ++seed) {
      Document object = Source(seed).ValueFor(*kind.schema, 6);
      Prune(*kind.schema, object);
      EXPECT_TRUE(ApplyDefaults(*kind.schema, object));
      if (!Validate(*kind.schema, object).empty()) continue;
      ++sound;
      ApplyComputedDefaults(kind, object);
      SCOPED_TRACE(StrCat(kind.kind, " seed ", seed, " ", PrintJson(object)));
      EXPECT_THAT(Validate(*kind.schema, object), IsEmpty());
      Document again = object;
      EXPECT_TRUE(ApplyDefaults(*kind.schema, again));
      ApplyComputedDefaults(kind, again);
      EXPECT_EQ(again, object);
      EXPECT_THAT(Prune(*kind.schema, again), IsEmpty());
    }
  }
  EXPECT_GT(sound, 500);
}

}  // namespace
}  // namespace trainyard::apiserver
