// What the names of objects, labels and annotations may look like.
//
// Each function returns nothing ("") for a name that is valid, and else what it must be, worded to stand
// behind the name: "must be no more than 63 characters". The texts live for ever.
#pragma once

#include <cstddef>
#include <string_view>

namespace trainyard::kube {

inline constexpr std::size_t kMaxDnsLabel = 63;
inline constexpr std::size_t kMaxDnsSubdomain = 253;
inline constexpr std::size_t kMaxLabelValue = 63;

// "my-name", "123-abc": namespaces, and parts of a host name.
std::string_view FindDns1123LabelProblem(std::string_view name);
// "my.name-1": most objects' names.
std::string_view FindDns1123SubdomainProblem(std::string_view name);
// "my-name", but not "1-name": services.
std::string_view FindDns1035LabelProblem(std::string_view name);
// "MyName", "example.com/my_name": label keys, resource names, finalizers. Annotation keys too, in lower
// case.
std::string_view FindQualifiedNameProblem(std::string_view name);
std::string_view FindLabelValueProblem(std::string_view value);

}  // namespace trainyard::kube
