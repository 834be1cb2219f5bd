// RFC 7386: what the patch names is set, what it names as null is removed.
#include "apiserver/patch/patch.h"

namespace trainyard::apiserver {

void ApplyMergePatch(Document& object, const Document& patch) {
  const Object* changes = patch.if_object();
  if (changes == nullptr) {
    object = patch;
    return;
  }
  if (!object.is_object()) object.emplace_object();
  Object& target = object.get_object();
  bool removes = false;
  for (const auto& change : *changes) {
    if (change.value().is_null()) {
      removes = true;
    } else {
      ApplyMergePatch(target[change.key()], change.value());
    }
  }
  if (!removes) return;
  RemoveIf(target, [&](std::string_view key, const Document&) {
    const Document* change = changes->if_contains(key);
    return change != nullptr && change->is_null();
  });
}

}  // namespace trainyard::apiserver
