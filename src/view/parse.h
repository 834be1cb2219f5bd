// From the objects of an API server to what people see of them. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "kube/node.h"
#include "kube/pod.h"
#include "view/job.h"

namespace trainyard::view {

// The object that is the job.
Job ParseJob(Kind kind, Document object);

// The pod of a member; nothing: its labels say that it is none.
std::optional<Member> ParseMember(Kind kind, const kube::CompactPod& pod);

// One for each place: the newest pod of it. The others are told of as gone.
struct Places {
  std::vector<Member> members;
  std::vector<kube::GonePod> followed;  // pods that are there still, and whose place another has
};
Places PutInPlace(Kind kind, const std::vector<kube::CompactPod>& pods);

Event ParseEvent(const Document& event);

// What keeps each node from taking a pod that asks for so much; all pods of the cluster say what is free.
std::vector<NodeRefusal> ExplainNodes(const kube::CompactPod& waiting,
                                      const std::vector<kube::CompactNode>& nodes,
                                      const std::vector<kube::CompactPod>& pods);

}  // namespace trainyard::view
