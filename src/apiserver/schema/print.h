// Schemas as OpenAPI documents, with or without references to shared definitions.
#pragma once

#include <set>
#include <string>

#include "apiserver/schema/schema.h"
#include "base/document.h"

namespace trainyard::apiserver {

class SchemaPrinter {
 public:
  // Without `referenced` everything is inline. With it, a named schema below the top becomes a reference and
  // its name goes there.
  explicit SchemaPrinter(OpenApiVersion version, std::set<std::string>* referenced = nullptr)
      : v2_(version == OpenApiVersion::kV2), referenced_(referenced) {}

  // The schema itself, also if it is named.
  Object Print(const Schema& schema) const;

 private:
  Object PrintBelow(const Schema& schema) const;
  void PrintType(const Schema& schema, Object& out) const;
  void PrintChildren(const Schema& schema, Object& out) const;
  void PrintAlternatives(const Schema& schema, Object& out) const;

  bool v2_;
  std::set<std::string>* referenced_;
};

}  // namespace trainyard::apiserver
