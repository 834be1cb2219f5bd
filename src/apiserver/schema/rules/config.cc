// What config maps and secrets look like.
#include <array>
#include <string>
#include <vector>

#include "apiserver/schema/rules/rules.h"
#include "base/base64.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::size_t kMaxData = 1'048'576;

// The bytes that the values hold; of base64, those that it stands for.
std::size_t SizeOf(const Document& object, std::string_view key, bool base64) {
  const Object* data = ObjectAt(object, {key});
  if (data == nullptr) return 0;
  std::size_t size = 0;
  for (const auto& member : *data) {
    const std::size_t length = Text(member.value()).size();
    size += base64 ? length / 4 * 3 : length;
  }
  return size;
}

void CheckSize(std::size_t size, std::string_view key, Causes& causes) {
  const FieldPath root;
  if (size > kMaxData) causes.TooLong(root.Child(key), StrCat("must have at most ", kMaxData, " bytes"));
}

void CheckUnchanged(const Document& before, const Document& after,
                    std::initializer_list<std::string_view> keys, Causes& causes) {
  if (!BoolAt(before, {"immutable"})) return;
  constexpr std::string_view kWhy = "field is immutable when `immutable` is set";
  const FieldPath root;
  if (!BoolAt(after, {"immutable"})) causes.Forbidden(root.Child("immutable"), kWhy);
  for (const std::string_view key : keys) {
    const Document* old_value = Find(before, {key});
    const Document* new_value = Find(after, {key});
    const bool same =
        old_value == nullptr || new_value == nullptr ? old_value == new_value : *old_value == *new_value;
    if (!same) causes.Forbidden(root.Child(key), kWhy);
  }
}

struct SecretType {
  std::string_view type;
  std::vector<std::string_view> all;  // keys that it must have
  bool json;                          // their values are JSON
};

const std::vector<SecretType>& SecretTypes() {
  static const std::vector<SecretType>& types = *new std::vector<SecretType>{
      {"kubernetes.io/dockercfg", {".dockercfg"}, true},
      {"kubernetes.io/dockerconfigjson", {".dockerconfigjson"}, true},
      {"kubernetes.io/ssh-auth", {"ssh-privatekey"}, false},
      {"kubernetes.io/tls", {"tls.crt", "tls.key"}, false},
  };
  return types;
}

void CheckSecretKeys(const Document& secret, Causes& causes) {
  const std::string_view type = StringAt(secret, {"type"});
  const FieldPath root;
  const FieldPath data = root.Child("data");
  for (const SecretType& known : SecretTypes()) {
    if (known.type != type) continue;
    for (const std::string_view key : known.all) {
      const Document* value = Find(secret, {"data", key});
      if (value == nullptr) {
        causes.Required(data.Key(key));
      } else if (known.json) {
        const auto bytes = DecodeBase64(Text(*value));
        if (!bytes.ok() || !ParseJson(*bytes).ok())
          causes.Invalid(data.Key(key), Document("<secret contents redacted>"), "must be valid JSON");
      }
    }
  }
  if (type == "kubernetes.io/basic-auth" && Find(secret, {"data", "username"}) == nullptr &&
      Find(secret, {"data", "password"}) == nullptr) {
    causes.Required(data.Key("username"));
    causes.Required(data.Key("password"));
  }
  if (type == "kubernetes.io/service-account-token" &&
      StringAt(secret, {"metadata", "annotations", "kubernetes.io/service-account.name"}).empty()) {
    const FieldPath metadata = root.Child("metadata");
    const FieldPath annotations = metadata.Child("annotations");
    causes.Required(annotations.Key("kubernetes.io/service-account.name"));
  }
}

}  // namespace

void CheckConfigMap(const Document& map, Causes& causes) {
  const FieldPath root;
  CheckDataKeys(map, "data", root, causes);
  CheckDataKeys(map, "binaryData", root, causes);
  if (const Object* binary = ObjectAt(map, {"binaryData"})) {
    const FieldPath data = root.Child("data");
    for (const auto& member : *binary) {
      if (Find(map, {"data", Key(member)}) != nullptr)
        causes.Invalid(data.Key(Key(member)), Document(Key(member)),
                       "duplicate of key present in binaryData");
    }
  }
  CheckSize(SizeOf(map, "data", false) + SizeOf(map, "binaryData", true), "", causes);
}

void CheckConfigMapUpdate(const Document& before, const Document& after, Causes& causes) {
  CheckUnchanged(before, after, {"data", "binaryData"}, causes);
}

void CheckSecret(const Document& secret, Causes& causes) {
  const FieldPath root;
  CheckDataKeys(secret, "data", root, causes);
  CheckSize(SizeOf(secret, "data", true), "data", causes);
  CheckSecretKeys(secret, causes);
}

void CheckSecretUpdate(const Document& before, const Document& after, Causes& causes) {
  const FieldPath root;
  if (StringAt(before, {"type"}) != StringAt(after, {"type"}))
    causes.Invalid(root.Child("type"), Document(StringAt(after, {"type"})), kImmutable);
  CheckUnchanged(before, after, {"data"}, causes);
}

}  // namespace trainyard::apiserver
