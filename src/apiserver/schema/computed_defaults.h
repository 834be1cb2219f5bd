// What the API server fills into objects of the built-in kinds beyond the defaults of their schemas, because
// it depends on other fields. Pure. The order for a new object is Prune(), ApplyDefaults(), Validate() and,
// if that finds nothing, ApplyComputedDefaults(), PrepareForCreate() and ValidateCreate(); values of the
// wrong type are passed over or replaced here, so validation by the schema has to come first.
//
//   kind        always                                              on create only
//   Pod         imagePullPolicy by the image's tag                  status: Pending, qosClass
//               requests from limits, where left out                priority 0, PreemptLowerPriority
//               hostPort = containerPort with hostNetwork
//               a volume without a source is an emptyDir
//               serviceAccountName and serviceAccount are the same
//               tolerations of not-ready and unreachable for 300 s
//   Service     targetPort = port; traffic policies by type         status is empty
//               sessionAffinityConfig; clusterIPs = [clusterIP]
//               ipFamilies IPv4, SingleStack
//   Secret      stringData goes into data, in base64
//   Namespace   label kubernetes.io/metadata.name                   status Active, finalizer kubernetes
//   Node        allocatable = capacity
//   CRD         names.singular, names.listKind                      status has the stored version
//   all         quantities and times in their canonical form        no namespace where there is none
//
// Left to the server, which has what is needed for it: metadata (uid, generation, ...), a service's address
// and node ports, the default service account and its token, limits of a namespace.
#pragma once

#include <string_view>

#include "apiserver/schema/kind_table.h"
#include "base/document.h"

namespace trainyard::apiserver {

// Idempotent; of other kinds nothing is changed.
void ApplyComputedDefaults(const KindInfo& kind, Document& object);

// What a new object begins with. What the client says of the status is dropped.
void PrepareForCreate(const KindInfo& kind, Document& object);

// Carries over into the new object what the server gave to the old one and the client has left out: a
// service's addresses and node ports, a pod's priority.
void PrepareForUpdate(const KindInfo& kind, const Document& old_object, Document& new_object);

// "Guaranteed": every container has limits for cpu and memory and requests as much. "BestEffort": none has
// any. Else "Burstable".
std::string_view QosClassOf(const Document& pod);

// Quantities in their shortest form ("1000m" is "1", a number becomes a text) and times in UTC, wherever the
// schema says that a value is one.
void Canonicalize(const Schema& schema, Document& value);

}  // namespace trainyard::apiserver
