#include "operator/spec_reader.h"

#include <algorithm>

#include "kube/names.h"

namespace trainyard::ops {

std::string Shown(const Document& value) { return Shortened(PrintJson(value), kShown); }

void SpecReader::Problem(std::string_view path, std::string_view what) {
  if (problem_.empty()) problem_ = StrCat(path, ": ", what);
}

std::optional<std::int64_t> SpecReader::Number(const Document& in, std::string_view path,
                                               std::string_view key, std::int64_t most, std::int64_t least) {
  const Document* value = Find(in, {key});
  if (value == nullptr || value->is_null()) return std::nullopt;
  const auto number = IntAt(in, {key});
  if (number && *number >= least && *number <= most) return number;
  Problem(StrCat(path, ".", key),
          StrCat("must be a whole number from ", least, " to ", most, ", not ", Shown(*value)));
  return std::nullopt;
}

std::optional<bool> SpecReader::Flag(const Document& in, std::string_view path, std::string_view key) {
  const Document* value = Find(in, {key});
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  Problem(StrCat(path, ".", key), "must be true or false");
  return std::nullopt;
}

std::optional<std::string> SpecReader::Word(const Document& in, std::string_view path, std::string_view key) {
  const Document* value = Find(in, {key});
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_string()) return std::string(Text(*value));
  if (value->is_int64() || value->is_uint64()) return PrintJson(*value);  // YAML takes digits for a number
  Problem(StrCat(path, ".", key), StrCat("must be a text, not ", Shown(*value)));
  return std::nullopt;
}

const Object* SpecReader::Map(const Document& in, std::string_view path, std::string_view key) {
  const Document* value = Find(in, {key});
  if (value == nullptr || value->is_null()) return nullptr;
  if (!value->is_object()) Problem(StrCat(path, ".", key), StrCat("must be an object, not ", Shown(*value)));
  return value->if_object();
}

const Array* SpecReader::List(const Document& in, std::string_view path, std::string_view key) {
  const Document* value = Find(in, {key});
  if (value == nullptr || value->is_null()) return nullptr;
  if (!value->is_array()) Problem(StrCat(path, ".", key), StrCat("must be a list, not ", Shown(*value)));
  return value->if_array();
}

void SpecReader::CheckMetadata(const std::string& path, const Document& pod_template) {
  if (Map(pod_template, path, "metadata") == nullptr) return;
  for (const std::string_view key : {"labels", "annotations"}) {
    const Object* texts = Map(*Find(pod_template, {"metadata"}), path + ".metadata", key);
    if (texts == nullptr) continue;
    for (const auto& text : *texts) {
      if (text.value().is_string()) continue;
      Problem(StrCat(path, ".metadata.", key, ".", Shortened(Key(text), kShown)),
              StrCat("must be a text, not ", Shown(text.value())));
    }
  }
}

const Array* SpecReader::Containers(const std::string& path, const Document* pod_template) {
  if (pod_template == nullptr || !pod_template->is_object()) {
    Problem(path, "is missing");
    return nullptr;
  }
  CheckMetadata(path, *pod_template);
  const Array* containers = ArrayAt(*pod_template, {"spec", "containers"});
  const std::string list = path + ".spec.containers";
  if (containers == nullptr || containers->empty()) {
    Problem(list, "there is no container");
    return nullptr;
  }
  for (std::size_t i = 0; i < containers->size(); ++i) {
    const std::string place = StrCat(list, "[", i, "]");
    if (StringAt((*containers)[i], {"image"}).empty()) Problem(place + ".image", "is missing");
    (void)List((*containers)[i], place, "env");
    (void)List((*containers)[i], place, "ports");
  }
  return containers;
}

void SpecReader::CheckPort(const std::string& path, const Document& port) {
  const auto number = IntAt(port, {"containerPort"});
  if (number && *number >= 1 && *number <= kMostPort) return;
  Problem(path + ".containerPort", StrCat("must be a whole number from 1 to ", kMostPort));
}

void SpecReader::CheckJobName(std::string_view name) {
  const std::string_view problem = kube::FindDns1035LabelProblem(name);
  if (!problem.empty()) Problem("metadata.name", StrCat("'", Escaped(name), "' ", problem));
}

void SpecReader::AddPods(const std::string& path, std::size_t replicas, const Document* pod_template) {
  if (pod_template == nullptr) return;
  std::size_t containers = 0;
  for (const std::string_view list : {"initContainers", "containers"}) {
    if (const Array* found = ArrayAt(*pod_template, {"spec", list})) containers += found->size();
  }
  most_containers_ = std::max(most_containers_, containers);
  containers_ += replicas * containers;
  const std::size_t each = PrintJson(*pod_template).size();
  pod_bytes_ += replicas * each;
  if (pod_bytes_ <= kMostOfPods) return;
  Problem(path + ".replicas",
          StrCat(replicas, " pods of ", FormatBytes(each), " each: all pods of the job come to ",
                 FormatBytes(pod_bytes_), ", and a job may have ", FormatBytes(kMostOfPods),
                 "; use fewer pods or a smaller template"));
}

bool SpecReader::NeedsConfigFile(std::string_view path, const Told& told) {
  const bool fits = told.longest < kLongestVariable && told.bytes * most_containers_ <= kMostToldToPod &&
                    told.bytes * containers_ <= kMostToldToJob;
  if (fits) return false;
  if (told.bytes > kLargestConfig) {
    Problem(path,
            StrCat("the addresses of ", told.pods, " pods come to ", FormatBytes(told.bytes),
                   ", and the ConfigMap that tells pods of each other holds ", FormatBytes(kLargestConfig),
                   "; use fewer pods, or shorter names of job and namespace"));
  }
  return true;
}

void SpecReader::CheckPodNames(std::string_view job, std::size_t longest, std::string_view example) {
  if (longest <= kube::kMaxDnsLabel) return;
  Problem("metadata.name", StrCat("is too long by ", longest - kube::kMaxDnsLabel, ": names of pods as ", job,
                                  "-", example, " can have ", kube::kMaxDnsLabel, " characters"));
}

}  // namespace trainyard::ops
