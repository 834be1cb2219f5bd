// RFC 7386: what the patch names is set, what it names as null is removed.
#include "local/patch/patch.h"

namespace trainyard::local {

void ApplyMergePatch(Document& object, const Document& patch) {
  const Object* changes = patch.if_object();
  if (changes == nullptr) {
    object = patch;
    return;
  }
  if (!object.is_object()) object.emplace_object();
  Object& target = object.get_object();
  for (const auto& change : *changes) {
    if (change.value().is_null()) {
      Remove(target, Key(change));
    } else {
      ApplyMergePatch(target[change.key()], change.value());
    }
  }
}

}  // namespace trainyard::local
