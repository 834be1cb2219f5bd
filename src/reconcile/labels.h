// Labels and annotations of our own, which the objects of every kind of job carry.
#pragma once

#include <string_view>

namespace trainyard::reconcile {

inline constexpr std::string_view kJobUidLabel = "trainyard.dev/job-uid";
// How often the pod of this index was made again before.
inline constexpr std::string_view kAttemptAnnotation = "trainyard.dev/attempt";

// The nodes that it was kept off when it was made, with commas.
inline constexpr std::string_view kAvoidsAnnotation = "trainyard.dev/avoids";

// Any value: a second instance of the pod does no harm, because the program itself sees to it that only one
// works. On a lost node such a pod is replaced without waiting for its grace period.
inline constexpr std::string_view kFencedAnnotation = "trainyard.dev/fenced";

// Why it was told to end while its object stays.
inline constexpr std::string_view kStoppedAnnotation = "trainyard.dev/stopped";

}  // namespace trainyard::reconcile
