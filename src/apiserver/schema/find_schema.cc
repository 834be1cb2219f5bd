#include "apiserver/schema/schema.h"

namespace trainyard::apiserver {

const Schema* FindSchema(const Schema& schema, const std::vector<std::string>& path) {
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
