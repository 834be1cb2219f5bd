// What a pod's volumes look like.
#include <algorithm>
#include <set>
#include <string>

#include "apiserver/schema/rules/rules.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::apiserver {
namespace {

void CheckMode(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes) {
  const auto mode = IntAt(parent, {key});
  if (mode && (*mode < 0 || *mode > 0777)) {
    causes.Invalid(path.Child(key), *mode, "must be a number between 0 and 0777 (octal), both inclusive");
  }
}

void CheckFiles(const Document& source, const FieldPath& path, Causes& causes) {
  CheckMode(source, "defaultMode", path, causes);
  std::set<std::string, std::less<>> paths;
  ForEachItem(source, "items", path, [&](const Document& item, const FieldPath& at) {
    if (Find(item, {"fieldRef"}) == nullptr && Find(item, {"resourceFieldRef"}) == nullptr)
      CheckGiven(item, "key", at, causes);
    CheckMode(item, "mode", at, causes);
    if (!CheckGiven(item, "path", at, causes)) return;
    CheckInnerPath(item, "path", at, causes);
    if (!paths.emplace(StringAt(item, {"path"})).second)
      causes.Duplicate(at.Child("path"), *Find(item, {"path"}));
  });
}

void CheckProjected(const Document& source, const FieldPath& path, Causes& causes) {
  CheckMode(source, "defaultMode", path, causes);
  ForEachItem(source, "sources", path, [&](const Document& projection, const FieldPath& at) {
    const Object* kinds = projection.if_object();
    if (kinds == nullptr) return;
    if (kinds->size() > 1) causes.Forbidden(at, "may not specify more than 1 volume type");
    if (kinds->empty()) causes.Required(at, "must specify a source");
    for (const auto& kind : *kinds) {
      const FieldPath below = at.Child(Key(kind));
      if (Key(kind) == "secret" || Key(kind) == "configMap") CheckGiven(kind.value(), "name", below, causes);
      if (Key(kind) == "serviceAccountToken") {
        if (CheckGiven(kind.value(), "path", below, causes))
          CheckInnerPath(kind.value(), "path", below, causes);
        const auto seconds = IntAt(kind.value(), {"expirationSeconds"});
        if (seconds && *seconds < 600)
          causes.Invalid(below.Child("expirationSeconds"), *seconds,
                         "may not specify a duration less than 10 minutes");
      }
      CheckFiles(kind.value(), below, causes);
    }
  });
}

void CheckSource(std::string_view kind, const Document& source, const FieldPath& path, Causes& causes) {
  if (kind == "hostPath") {
    if (CheckGiven(source, "path", path, causes) &&
        std::ranges::count(Split(StringAt(source, {"path"}), '/'), std::string_view("..")) > 0)
      causes.Invalid(path.Child("path"), *Find(source, {"path"}), "must not contain '..'");
  } else if (kind == "configMap") {
    CheckGiven(source, "name", path, causes);
    CheckFiles(source, path, causes);
  } else if (kind == "secret") {
    CheckGiven(source, "secretName", path, causes);
    CheckFiles(source, path, causes);
  } else if (kind == "downwardAPI") {
    CheckFiles(source, path, causes);
  } else if (kind == "projected") {
    CheckProjected(source, path, causes);
  } else if (kind == "persistentVolumeClaim") {
    CheckGiven(source, "claimName", path, causes);
  } else if (kind == "nfs") {
    CheckGiven(source, "server", path, causes);
    if (CheckGiven(source, "path", path, causes) && !StringAt(source, {"path"}).starts_with('/'))
      causes.Invalid(path.Child("path"), *Find(source, {"path"}), "must be an absolute path");
  } else if (kind == "csi") {
    CheckGiven(source, "driver", path, causes);
  } else if (kind == "emptyDir" && StringAt(source, {"sizeLimit"}).starts_with('-')) {
    causes.Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
  }
}

}  // namespace

void CheckVolumes(const Document& spec, const FieldPath& path, Causes& causes) {
  std::set<std::string, std::less<>> names;
  ForEachItem(spec, "volumes", path, [&](const Document& volume, const FieldPath& at) {
    if (CheckGiven(volume, "name", at, causes)) {
      CheckName(volume, "name", at, kube::FindDns1123LabelProblem, causes);
      if (!names.emplace(StringAt(volume, {"name"})).second)
        causes.Duplicate(at.Child("name"), *Find(volume, {"name"}));
    }
    const Object* object = volume.if_object();
    if (object == nullptr) return;
    std::size_t sources = 0;
    for (const auto& member : *object) {
      if (Key(member) == "name") continue;
      CheckSource(Key(member), member.value(), at.Child(Key(member)), causes);
      if (++sources > 1) causes.Forbidden(at.Child(Key(member)), "may not specify more than 1 volume type");
    }
    if (sources == 0) causes.Required(at, "must specify a volume type");
  });
}

}  // namespace trainyard::apiserver
