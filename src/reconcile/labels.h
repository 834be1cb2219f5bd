// Labels and annotations of our own, which the objects of every kind of job carry.
#pragma once

#include <string_view>

namespace trainyard::reconcile {

inline constexpr std::string_view kJobUidLabel = "trainyard.dev/job-uid";

// The nodes that it was kept off when it was made, with commas.
inline constexpr std::string_view kAvoidsAnnotation = "trainyard.dev/avoids";

// Any value: a second instance of the pod does no harm, because the program itself sees to it that only one
// works. On a lost node such a pod is replaced without waiting for its grace period.
inline constexpr std::string_view kFencedAnnotation = "trainyard.dev/fenced";

// Why it was told to end while its object stays.
inline constexpr std::string_view kStoppedAnnotation = "trainyard.dev/stopped";

// By which pods name the PodGroup of their gang to Volcano.
inline constexpr std::string_view kVolcanoGroupAnnotation = "scheduling.k8s.io/group-name";
// Keeps a pod from being scheduled until its whole gang can be.
inline constexpr std::string_view kGangGate = "trainyard.dev/gang";

}  // namespace trainyard::reconcile
