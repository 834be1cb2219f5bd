#include "apiserver/object_write.h"

#include <algorithm>

#include "apiserver/errors.h"
#include "apiserver/patch/patch.h"
#include "apiserver/schema/kind_table.h"
#include "apiserver/strategy.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

// What the server alone decides, and a client cannot change.
constexpr std::string_view kSystemFields[] = {
    "uid",  "creationTimestamp", "generation",  "deletionTimestamp", "selfLink", "deletionGracePeriodSeconds",
    "name", "namespace",         "generateName"};

constexpr std::size_t kMaxGeneratedPrefix = 58;  // with five more letters it still is a label

absl::Status CheckTypes(const WriteContext& context, Document& body) {
  if (!body.is_object()) return kube::ToStatus(BadRequest("the body must be a JSON object"));
  for (const std::string_view field : {"apiVersion", "kind"}) {
    const Document* value = Find(body, {field});
    if (value != nullptr && !value->is_string())
      return kube::ToStatus(BadRequest(StrCat(field, " must be a text")));
  }
  const std::string wanted = context.resource.ApiVersion(context.version.name);
  const std::string_view version = StringAt(body, {"apiVersion"}, wanted);
  const std::string_view kind = StringAt(body, {"kind"}, context.resource.kind);
  if (version != wanted || kind != context.resource.kind) {
    return kube::ToStatus(
        BadRequest(StrCat("the body is ", Escaped(version), " ", Escaped(kind), ", but the path is that of ",
                          wanted, " ", context.resource.kind)));
  }
  Object& object = body.get_object();
  object["apiVersion"] = wanted;
  object["kind"] = context.resource.kind;
  Document& metadata = object["metadata"];
  if (metadata.is_null()) metadata.emplace_object();
  if (!metadata.is_object()) return kube::ToStatus(BadRequest("metadata must be an object"));
  for (const std::string_view field : {"name", "namespace", "generateName", "resourceVersion", "uid"}) {
    const Document* value = Find(metadata, {field});
    if (value != nullptr && !value->is_string() && !value->is_null()) {
      return kube::ToStatus(BadRequest(StrCat("metadata.", field, " must be a text")));
    }
  }
  return absl::OkStatus();
}

absl::Status GiveName(const WriteContext& context, Object& metadata, const NewIdentity& identity) {
  const Document whole(metadata);
  const std::string_view name = StringAt(whole, {"name"});
  const std::string_view ns = StringAt(whole, {"namespace"});
  if (!ns.empty() && ns != identity.ns) {
    return kube::ToStatus(BadRequest(
        StrCat("the object's namespace is '", Escaped(ns), "', but the request's is '", identity.ns, "'")));
  }
  if (!identity.name.empty() && !name.empty() && name != identity.name) {
    return kube::ToStatus(BadRequest(
        StrCat("the object's name is '", Escaped(name), "', but the request's is '", identity.name, "'")));
  }
  std::string given(name.empty() ? std::string_view(identity.name) : name);
  if (const std::string_view prefix = StringAt(whole, {"generateName"}); given.empty() && !prefix.empty()) {
    given = StrCat(prefix.substr(0, kMaxGeneratedPrefix), identity.name_suffix);
  }
  if (given.empty()) {
    return kube::ToStatus(Invalid(context.resource, "",
                                  {{.reason = "FieldValueRequired",
                                    .field = "metadata.name",
                                    .message = "Required value: name or generateName is required"}}));
  }
  metadata["name"] = given;
  if (!identity.ns.empty()) metadata["namespace"] = identity.ns;
  return absl::OkStatus();
}

// `live` is null for a new object. A subresource changes what nobody else may, and is held to the schema
// alone. A built-in object whose values are not of their types is no object of its kind at all.
// What a server that decodes into types could not read at all.
absl::Status CheckFieldTypes(const WriteContext& context, const std::vector<kube::Cause>& causes) {
  if (context.resource.custom) return absl::OkStatus();
  const auto mistyped = std::ranges::find(causes, "FieldValueTypeInvalid", &kube::Cause::reason);
  if (mistyped == causes.end()) return absl::OkStatus();
  return kube::ToStatus(BadRequest(StrCat("the body cannot be read as a ", context.resource.kind, ": ",
                                          mistyped->field, ": ", mistyped->message)));
}

// A process is given its texts up to the first NUL, and something else than what is shown would run.
bool HoldsNul(const Document& value) {
  if (value.is_string()) return value.get_string().find('\0') != boost::json::string::npos;
  if (value.is_array()) return std::ranges::any_of(value.get_array(), HoldsNul);
  if (!value.is_object()) return false;
  return std::ranges::any_of(value.get_object(), [](const auto& member) { return HoldsNul(member.value()); });
}

absl::Status CheckAll(const WriteContext& context, const Document* live, const Document& object,
                      std::string_view subresource) {
  std::vector<kube::Cause> causes = Validate(*context.version.schema, object);
  TY_RETURN_IF_ERROR(CheckFieldTypes(context, causes));
  if (subresource.empty()) {
    for (kube::Cause& cause : ValidateKind(context.resource, live, object)) {
      const bool known = std::any_of(causes.begin(), causes.end(),
                                     [&](const kube::Cause& other) { return other.field == cause.field; });
      if (!known) causes.push_back(std::move(cause));
    }
  }
  const Document* spec =
      !context.resource.custom && context.resource.plural == "pods" ? Find(object, {"spec"}) : nullptr;
  if (spec != nullptr && HoldsNul(*spec)) {
    causes.push_back(
        {.reason = "FieldValueInvalid",
         .field = "spec",
         .message = "Invalid value: a text in it holds a NUL character, which no process can be given"});
  }
  if (causes.empty()) return absl::OkStatus();
  return kube::ToStatus(Invalid(context.resource, StringAt(object, {"metadata", "name"}), std::move(causes)));
}

void CopyMember(const Object& from, Object& to, std::string_view key) {
  if (const Document* value = from.if_contains(key)) {
    to[key] = *value;
  } else {
    Remove(to, key);
  }
}

// Without what does not count as a change of what was asked for.
bool SameIntent(const Document& a, const Document& b) {
  const auto intent = [](const Document& object) {
    Object copy = object.get_object();
    for (const std::string_view key : {"metadata", "status", "apiVersion", "kind"}) Remove(copy, key);
    return copy;
  };
  return intent(a) == intent(b);
}

// What is empty in the metadata is as good as left out.
void DropEmptyMetadata(Object& metadata) {
  for (const std::string_view field :
       {"labels", "annotations", "finalizers", "ownerReferences", "managedFields"}) {
    const Document* value = metadata.if_contains(field);
    if (value == nullptr) continue;
    const bool empty = value->is_null() || (value->is_object() && value->get_object().empty()) ||
                       (value->is_array() && value->get_array().empty());
    if (empty) Remove(metadata, field);
  }
}

void SetGeneration(const WriteContext& context, const Document& live, Document& object) {
  if (!context.resource.generation) return;
  const std::int64_t before = IntAt(live, {"metadata", "generation"}).value_or(1);
  const bool marked = (Find(live, {"metadata", "deletionTimestamp"}) == nullptr) !=
                      (Find(object, {"metadata", "deletionTimestamp"}) == nullptr);
  MakeObjectAt(object, {"metadata"})["generation"] =
      SameIntent(live, object) && !marked ? before : before + 1;
}

void Track(const WriteContext& context, const Document& before, Document& after,
           std::string_view subresource) {
  if (!context.track) return;
  TrackUpdate(before, after, *context.version.schema,
              {.name = context.manager,
               .operation = "Update",
               .api_version = context.resource.ApiVersion(context.version.name),
               .subresource = std::string(subresource),
               .time = context.now});
}

}  // namespace

absl::Status Normalize(const WriteContext& context, Document& object, std::vector<std::string>& warnings) {
  const std::vector<std::string> unknown = Prune(*context.version.schema, object, context.budget);
  if (context.budget.overdrawn()) return OverBudget("names of unknown fields");
  if (!unknown.empty() && context.validation == FieldValidation::kStrict) {
    std::string fields;
    for (const std::string& field : unknown)
      StrAppend(fields, fields.empty() ? "" : ", ", "unknown field \"", field, "\"");
    return kube::ToStatus(BadRequest(StrCat(context.resource.kind, " in version \"", context.version.name,
                                            "\" cannot be handled as a ", context.resource.kind,
                                            ": strict decoding error: ", fields)));
  }
  if (context.validation == FieldValidation::kWarn) {
    for (const std::string& field : unknown) warnings.push_back(StrCat("unknown field \"", field, "\""));
  }
  if (!ApplyDefaults(*context.version.schema, object, context.budget)) return OverBudget("defaults");
  // Before what a kind fills in by itself, which does not look at what it finds in its place.
  TY_RETURN_IF_ERROR(CheckFieldTypes(context, Validate(*context.version.schema, object)));
  DropEmptyMetadata(MakeObjectAt(object, {"metadata"}));
  ApplyKindDefaults(context.resource, object);
  return absl::OkStatus();
}

absl::StatusOr<PreparedObject> PrepareCreate(const WriteContext& context, Document body,
                                             const NewIdentity& identity) {
  TY_RETURN_IF_ERROR(CheckTypes(context, body));
  PreparedObject prepared{.object = std::move(body)};
  Object& metadata = prepared.object.at("metadata").get_object();
  if (!StringAt(prepared.object, {"metadata", "resourceVersion"}).empty()) {
    return kube::ToStatus(BadRequest("resourceVersion must not be set on an object that is to be created"));
  }
  for (const std::string_view field : {"uid", "creationTimestamp", "generation", "deletionTimestamp",
                                       "deletionGracePeriodSeconds", "selfLink", "resourceVersion"}) {
    Remove(metadata, field);
  }
  TY_RETURN_IF_ERROR(GiveName(context, metadata, identity));
  metadata["uid"] = identity.uid;
  metadata["creationTimestamp"] = PrintTime(context.now);
  if (context.resource.generation) metadata["generation"] = 1;
  if (context.version.has_status) Remove(prepared.object.get_object(), "status");
  PrepareKindForCreate(context.resource, prepared.object, context.now);
  TY_RETURN_IF_ERROR(Normalize(context, prepared.object, prepared.warnings));
  TY_RETURN_IF_ERROR(CheckAll(context, nullptr, prepared.object, ""));
  Track(context, Document(Object()), prepared.object, "");
  return prepared;
}

absl::StatusOr<PreparedObject> PrepareUpdate(const WriteContext& context, const Document& live, Document body,
                                             std::string_view subresource) {
  TY_RETURN_IF_ERROR(CheckTypes(context, body));
  PreparedObject prepared{.object = std::move(body)};
  Object& object = prepared.object.get_object();
  const std::string_view uid = StringAt(prepared.object, {"metadata", "uid"});
  if (!uid.empty() && uid != StringAt(live, {"metadata", "uid"})) {
    return kube::ToStatus(Conflict(context.resource, StringAt(live, {"metadata", "name"}),
                                   StrCat("has the uid ", StringAt(live, {"metadata", "uid"}), ", not ",
                                          Escaped(uid), ": it was deleted and made anew")));
  }
  for (const std::string_view field : {"name", "namespace"}) {
    const std::string_view given = StringAt(prepared.object, {"metadata", field});
    const std::string_view is = StringAt(live, {"metadata", field});
    if (!given.empty() && given != is) {
      return kube::ToStatus(BadRequest(
          StrCat("the object's ", field, " is '", Escaped(given), "', but the request's is '", is, "'")));
    }
  }
  const Object& live_metadata = *ObjectAt(live, {"metadata"});
  // The defaults of the version that a status is written in are not for the rest of the object.
  const bool status_only = context.resource.custom && subresource == "status";
  if (status_only) TY_RETURN_IF_ERROR(Normalize(context, prepared.object, prepared.warnings));
  if (subresource.empty()) {
    Object& metadata = object["metadata"].get_object();
    for (const std::string_view field : kSystemFields) CopyMember(live_metadata, metadata, field);
    if (context.version.has_status) CopyMember(live.get_object(), object, "status");
  } else {
    // Only its own part changes, and all else stays as it is.
    Object whole = live.get_object();
    if (const Document* managed = Find(object, {"metadata", "managedFields"})) {
      whole["metadata"].get_object()["managedFields"] = *managed;
    }
    if (subresource == "status") {
      CopyMember(object, whole, "status");
    } else if (subresource == "finalize") {
      whole["spec"] = object.if_contains("spec") != nullptr ? object["spec"] : Document(Object());
    }
    object = std::move(whole);
  }
  Remove(object["metadata"].get_object(), "resourceVersion");
  PrepareKindForUpdate(context.resource, live, prepared.object);
  if (!status_only) TY_RETURN_IF_ERROR(Normalize(context, prepared.object, prepared.warnings));
  SetGeneration(context, live, prepared.object);
  TY_RETURN_IF_ERROR(CheckAll(context, &live, prepared.object, subresource));
  Track(context, live, prepared.object, subresource);
  return prepared;
}

absl::StatusOr<DeleteTerms> ParseDeleteTerms(const Document* body, std::string_view grace,
                                             std::string_view propagation, std::string_view orphan) {
  DeleteTerms terms;
  if (body != nullptr) {
    const KindInfo& kind = *BuiltInKinds().Find("", "v1", "DeleteOptions");
    for (const kube::Cause& cause : Validate(*kind.schema, *body)) {
      return kube::ToStatus(BadRequest(StrCat(
          "the body cannot be read as DeleteOptions: ", cause.field.empty() ? "" : StrCat(cause.field, ": "),
          cause.message)));
    }
    terms.grace_seconds = IntAt(*body, {"gracePeriodSeconds"});
    terms.propagation = StringAt(*body, {"propagationPolicy"});
    if (Find(*body, {"orphanDependents"}) != nullptr && terms.propagation.empty()) {
      terms.propagation = BoolAt(*body, {"orphanDependents"}) ? "Orphan" : "Background";
    }
    terms.uid = StringAt(*body, {"preconditions", "uid"});
    terms.resource_version = StringAt(*body, {"preconditions", "resourceVersion"});
  }
  if (!grace.empty()) {
    const auto seconds = ParseNumber<std::int64_t>(grace);
    if (!seconds) return kube::ToStatus(BadRequest("gracePeriodSeconds must be a whole number"));
    terms.grace_seconds = seconds;
  }
  constexpr std::int64_t kLongestGrace = std::int64_t{10} * 365 * 24 * 3600;
  if (terms.grace_seconds && *terms.grace_seconds > kLongestGrace) {
    return kube::ToStatus(BadRequest("gracePeriodSeconds must be at most 315360000, which is ten years"));
  }
  if (!propagation.empty()) terms.propagation = propagation;
  if (!orphan.empty() && terms.propagation.empty())
    terms.propagation = orphan == "true" ? "Orphan" : "Background";
  if (terms.grace_seconds && *terms.grace_seconds < 0) {
    return kube::ToStatus(BadRequest("gracePeriodSeconds must not be negative"));
  }
  if (!terms.propagation.empty() && terms.propagation != "Background" && terms.propagation != "Foreground" &&
      terms.propagation != "Orphan") {
    const std::string problem = StrCat("Unsupported value: \"", Escaped(terms.propagation),
                                       "\": supported values: \"Background\", \"Foreground\", \"Orphan\"");
    return kube::ToStatus(
        {.code = 422,
         .reason = "Invalid",
         .message = StrCat("propagationPolicy: ", problem),
         .causes = {{.reason = "FieldValueNotSupported", .field = "propagationPolicy", .message = problem}}});
  }
  return terms;
}

bool IsReadyToRemove(const Document& object) {
  if (Find(object, {"metadata", "deletionTimestamp"}) == nullptr) return false;
  const Array* finalizers = ArrayAt(object, {"metadata", "finalizers"});
  if (finalizers != nullptr && !finalizers->empty()) return false;
  if (HoldsInSpec(object)) return false;
  return IntAt(object, {"metadata", "deletionGracePeriodSeconds"}).value_or(0) == 0;
}

absl::StatusOr<DeleteDecision> DecideDelete(const ResourceInfo& resource, const Document& live,
                                            const DeleteTerms& terms, absl::Time now) {
  const std::string_view name = StringAt(live, {"metadata", "name"});
  const std::string_view uid = StringAt(live, {"metadata", "uid"});
  const std::string_view version = StringAt(live, {"metadata", "resourceVersion"});
  if (!terms.uid.empty() && terms.uid != uid) {
    return kube::ToStatus(Conflict(resource, name,
                                   StrCat("has the uid ", uid, ", and only the one with ", Escaped(terms.uid),
                                          " was to be deleted: nothing was changed")));
  }
  if (!terms.resource_version.empty() && terms.resource_version != version) {
    return kube::ToStatus(
        Conflict(resource, name,
                 StrCat("is at resourceVersion ", version, ", and was to be deleted only at ",
                        Escaped(terms.resource_version), ": nothing was changed")));
  }
  DeleteDecision decision{.verdict = DeleteVerdict::kMark, .object = live};
  Object& metadata = MakeObjectAt(decision.object, {"metadata"});
  Array finalizers = ArrayAt(live, {"metadata", "finalizers"}) != nullptr
                         ? *ArrayAt(live, {"metadata", "finalizers"})
                         : Array();
  const auto set = [&](std::string_view finalizer, bool wanted) {
    auto* found = std::find_if(finalizers.begin(), finalizers.end(),
                               [&](const Document& f) { return Text(f) == finalizer; });
    if (wanted && found == finalizers.end()) finalizers.emplace_back(finalizer);
    if (!wanted && found != finalizers.end()) finalizers.erase(found);
  };
  if (!terms.propagation.empty()) {
    set("foregroundDeletion", terms.propagation == "Foreground");
    set("orphan", terms.propagation == "Orphan");
  }
  if (finalizers.empty()) {
    Remove(metadata, "finalizers");
  } else {
    metadata["finalizers"] = finalizers;
  }
  const std::int64_t grace = GraceOf(resource, live, terms.grace_seconds);
  const bool marked = Find(live, {"metadata", "deletionTimestamp"}) != nullptr;
  const std::int64_t grace_before = IntAt(live, {"metadata", "deletionGracePeriodSeconds"}).value_or(0);
  if (!marked || grace < grace_before) {
    metadata["deletionTimestamp"] = PrintTime(now + absl::Seconds(grace));
    metadata["deletionGracePeriodSeconds"] = grace;
  }
  MarkKindDeleted(resource, decision.object);
  if (IsReadyToRemove(decision.object)) {
    decision.verdict = DeleteVerdict::kRemove;
  } else if (decision.object == live) {
    decision.verdict = DeleteVerdict::kNothing;
  } else if (resource.generation && !marked) {
    metadata["generation"] = IntAt(live, {"metadata", "generation"}).value_or(1) + 1;
  }
  return decision;
}

}  // namespace trainyard::apiserver
