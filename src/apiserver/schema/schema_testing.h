// Small builders for tests of schemas.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/schema/schema.h"
#include "base/check.h"
#include "base/document.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {

inline Document Json(std::string_view text) {
  auto document = ParseJson(text);
  TY_CHECK(document.ok(), StrCat("the test's JSON is broken: ", text));
  return *std::move(document);
}

inline SchemaPtr SchemaOf(std::string_view text) {
  auto schema = ParseOpenApiSchema(Json(text));
  TY_CHECK(schema.ok(), StrCat("the test's schema is broken: ", Message(schema.status())));
  return *std::move(schema);
}

// The schema at a path of property names; list items and map values are stepped into. Null: there is none.
inline const Schema* FindSchema(const Schema& schema, const std::vector<std::string>& path) {
  const Schema* at = &schema;
  for (const std::string& key : path) {
    while (at->type == SchemaType::kArray && at->items) at = at->items.get();
    const auto property = at->properties.find(key);
    if (property != at->properties.end()) {
      at = property->second.get();
    } else if (at->additional) {
      at = at->additional.get();
    } else {
      return nullptr;
    }
  }
  return at;
}

}  // namespace trainyard::apiserver
