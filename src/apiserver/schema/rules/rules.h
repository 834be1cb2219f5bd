// The rules of the built-in kinds, one function each; see builtin_validation.h.
#pragma once

#include <string_view>

#include "apiserver/schema/field_error.h"
#include "apiserver/schema/kind_table.h"
#include "base/document.h"

namespace trainyard::apiserver {

inline constexpr std::string_view kImmutable = "field is immutable";

// ---- of parts of objects

template <typename Visit>
void ForEachItem(const Document& parent, std::string_view key, const FieldPath& path, const Visit& visit) {
  const Array* array = ArrayAt(parent, {key});
  if (array == nullptr) return;
  const FieldPath list = path.Child(key);
  for (std::size_t i = 0; i < array->size(); ++i) visit((*array)[i], list.Index(i));
}

using NameProblem = std::string_view (*)(std::string_view name);

// A name that may be missing: what there is has to be well-formed.
void CheckName(const Document& parent, std::string_view key, const FieldPath& path, NameProblem problem,
               Causes& causes);
// A text that must not be empty; false if it is.
bool CheckGiven(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes);
void CheckRange(const Document& parent, std::string_view key, const FieldPath& path, std::int64_t least,
                std::int64_t most, Causes& causes);
void CheckNotNegative(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes);
void CheckLabels(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes);
void CheckLabelSelector(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes);
// A port's number or name.
void CheckPort(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes);
// Keys of config maps and secrets.
void CheckDataKeys(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes);
// A relative path that stays inside.
void CheckInnerPath(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes);

// "http", "web-1": at most 15 characters, of which one is a letter.
std::string_view FindPortNameProblem(std::string_view name);
std::string_view FindEnvNameProblem(std::string_view name);
bool IsIpAddress(std::string_view text);

// ---- of whole objects

void CheckMetadata(const KindInfo& kind, const Document& object, Causes& causes);
void CheckMetadataUpdate(const Document& before, const Document& after, Causes& causes);

void CheckPod(const Document& pod, Causes& causes);
void CheckPodUpdate(const Document& before, const Document& after, Causes& causes);
void CheckContainers(const Document& spec, const FieldPath& path, Causes& causes);
void CheckVolumes(const Document& spec, const FieldPath& path, Causes& causes);
void CheckScheduling(const Document& spec, const FieldPath& path, Causes& causes);

void CheckService(const Document& service, Causes& causes);
void CheckServiceUpdate(const Document& before, const Document& after, Causes& causes);
void CheckEndpoints(const Document& endpoints, Causes& causes);

void CheckConfigMap(const Document& map, Causes& causes);
void CheckConfigMapUpdate(const Document& before, const Document& after, Causes& causes);
void CheckSecret(const Document& secret, Causes& causes);
void CheckSecretUpdate(const Document& before, const Document& after, Causes& causes);

void CheckDefinition(const Document& definition, Causes& causes);
void CheckDefinitionUpdate(const Document& before, const Document& after, Causes& causes);

}  // namespace trainyard::apiserver
