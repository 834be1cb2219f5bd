// Where the node tells what happens to pods, for people to read: `kubectl describe`.
#pragma once

#include <string>

namespace trainyard::node {

struct EventNote {
  bool warning = false;  // else Normal
  std::string reason;    // "Started", "Killing", "BackOff", "Unhealthy", "FailedMount", "Failed"
  std::string message;
  std::string container;  // empty: the pod as a whole

  bool operator==(const EventNote&) const = default;
};

struct EventObject {
  std::string kind = "Pod";
  std::string ns;
  std::string name;
  std::string uid;
  std::string field_path;  // "spec.containers{main}"
  std::string node;        // source.host; the component is "kubelet"
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  // From the node's own thread; must not wait.
  virtual void Record(const EventObject& object, const EventNote& note) = 0;
};

}  // namespace trainyard::node
