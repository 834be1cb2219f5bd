#include "placement/demand.h"

#include <algorithm>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::placement {
namespace {

using Operator = kube::LabelRequirement::Operator;

const Array& ArrayOrNone(const Document& document, Path path) {
  static const Array none;
  const Array* found = ArrayAt(document, path);
  return found != nullptr ? *found : none;
}

absl::StatusOr<Operator> ParseOperator(std::string_view word) {
  if (word == "In") return Operator::kIn;
  if (word == "NotIn") return Operator::kNotIn;
  if (word == "Exists") return Operator::kExists;
  if (word == "DoesNotExist") return Operator::kDoesNotExist;
  if (word == "Gt") return Operator::kGreaterThan;
  if (word == "Lt") return Operator::kLessThan;
  return absl::InvalidArgumentError(StrCat("'", Escaped(word), "' is no operator of a node affinity"));
}

absl::StatusOr<std::vector<kube::LabelRequirement>> ParseRequirements(const Array& expressions) {
  std::vector<kube::LabelRequirement> requirements;
  for (const Document& expression : expressions) {
    kube::LabelRequirement requirement{.key = std::string(StringAt(expression, {"key"}))};
    TY_ASSIGN_OR_RETURN(requirement.op, ParseOperator(StringAt(expression, {"operator"})));
    for (const Document& value : ArrayOrNone(expression, {"values"}))
      requirement.values.emplace_back(Text(value));
    std::sort(requirement.values.begin(), requirement.values.end());
    requirements.push_back(std::move(requirement));
  }
  return requirements;
}

absl::StatusOr<NodeTerm> ParseNodeTerm(const Document& term) {
  NodeTerm parsed;
  TY_ASSIGN_OR_RETURN(auto labels, ParseRequirements(ArrayOrNone(term, {"matchExpressions"})));
  TY_ASSIGN_OR_RETURN(parsed.fields, ParseRequirements(ArrayOrNone(term, {"matchFields"})));
  // A term that asks for nothing matches nothing.
  const bool empty = labels.empty() && parsed.fields.empty();
  if (empty) {
    parsed.labels = kube::LabelSelector::Nothing();
    return parsed;
  }
  TY_ASSIGN_OR_RETURN(parsed.labels, kube::LabelSelector::FromRequirements(std::move(labels)));
  return parsed;
}

absl::StatusOr<std::vector<PodTerm>> ParsePodTerms(const Document& pod, std::string_view kind) {
  std::vector<PodTerm> terms;
  for (const Document& term :
       ArrayOrNone(pod, {"spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"})) {
    PodTerm parsed{.topology_key = std::string(StringAt(term, {"topologyKey"}))};
    const Document* selector = Find(term, {"labelSelector"});
    TY_ASSIGN_OR_RETURN(parsed.labels,
                        kube::LabelSelector::FromDocument(selector != nullptr ? *selector : Document()));
    for (const Document& ns : ArrayOrNone(term, {"namespaces"})) parsed.namespaces.emplace_back(Text(ns));
    parsed.all_namespaces = Find(term, {"namespaceSelector"}) != nullptr;
    terms.push_back(std::move(parsed));
  }
  return terms;
}

absl::Status ParseAffinity(const Document& pod, PodDemand& demand) {
  for (const Document& term :
       ArrayOrNone(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                         "nodeSelectorTerms"})) {
    TY_ASSIGN_OR_RETURN(NodeTerm parsed, ParseNodeTerm(term));
    demand.node_terms.push_back(std::move(parsed));
  }
  for (const Document& preferred : ArrayOrNone(
           pod, {"spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"})) {
    const Document* term = Find(preferred, {"preference"});
    if (term == nullptr) continue;
    TY_ASSIGN_OR_RETURN(NodeTerm parsed, ParseNodeTerm(*term));
    parsed.weight = IntAt(preferred, {"weight"}).value_or(1);
    demand.preferred_nodes.push_back(std::move(parsed));
  }
  TY_ASSIGN_OR_RETURN(demand.together, ParsePodTerms(pod, "podAffinity"));
  TY_ASSIGN_OR_RETURN(demand.apart, ParsePodTerms(pod, "podAntiAffinity"));
  return absl::OkStatus();
}

void ParseHostPorts(const Document& pod, PodDemand& demand) {
  for (const Document& container : ArrayOrNone(pod, {"spec", "containers"})) {
    for (const Document& port : ArrayOrNone(container, {"ports"})) {
      const std::int64_t number = IntAt(port, {"hostPort"}).value_or(0);
      if (number == 0) continue;
      demand.host_ports.push_back({.port = number,
                                   .protocol = std::string(StringAt(port, {"protocol"}, "TCP")),
                                   .address = std::string(StringAt(port, {"hostIP"}))});
    }
  }
}

}  // namespace

bool Toleration::Tolerates(const kube::Taint& taint) const {
  if (!effect.empty() && taint.effect != std::string_view(effect)) return false;
  if (!key.empty() && taint.key != std::string_view(key)) return false;
  if (key.empty() && !exists) return false;
  return exists || taint.value == std::string_view(value);
}

absl::StatusOr<PodDemand> ParseDemand(std::string json) {
  TY_ASSIGN_OR_RETURN(const Document pod, ParseJson(json));
  TY_ASSIGN_OR_RETURN(kube::CompactPod compact, kube::ParsePod(std::move(json)));
  PodDemand demand{.meta = std::move(compact.meta),
                   .node = std::string(compact.node.view()),
                   .scheduler = std::string(StringAt(pod, {"spec", "schedulerName"})),
                   .finished = compact.IsFinished(),
                   .gated = !ArrayOrNone(pod, {"spec", "schedulingGates"}).empty(),
                   .priority = IntAt(pod, {"spec", "priority"}).value_or(0),
                   .may_preempt = StringAt(pod, {"spec", "preemptionPolicy"}) != "Never",
                   .requests = std::move(compact.requests),
                   .nominated_node = std::string(StringAt(pod, {"status", "nominatedNodeName"}))};
  if (const Object* selector = ObjectAt(pod, {"spec", "nodeSelector"})) {
    for (const auto& label : *selector) demand.node_selector.emplace_back(Key(label), Text(label.value()));
  }
  for (const Document& toleration : ArrayOrNone(pod, {"spec", "tolerations"})) {
    demand.tolerations.push_back({.key = std::string(StringAt(toleration, {"key"})),
                                  .exists = StringAt(toleration, {"operator"}) == "Exists",
                                  .value = std::string(StringAt(toleration, {"value"})),
                                  .effect = std::string(StringAt(toleration, {"effect"}))});
  }
  for (const Document& condition : ArrayOrNone(pod, {"status", "conditions"})) {
    if (StringAt(condition, {"type"}) == "PodScheduled") demand.told = StringAt(condition, {"message"});
  }
  ParseHostPorts(pod, demand);
  TY_RETURN_IF_ERROR(ParseAffinity(pod, demand));
  return demand;
}

}  // namespace trainyard::placement
