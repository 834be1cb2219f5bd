// Small builders for tests of schemas.
#pragma once

#include <string_view>

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

}  // namespace trainyard::apiserver
