"""TFJobs for tests: how they are written, and what must always hold of their statuses."""

import jobs
from jobs import FOREVER, ROOT, current, owner, seconds, version  # also for those who import them from here


def role(script, replicas=1, policy=None, container=None, **spec):
    """A replica spec whose container runs a script of the shell."""
    main = {"name": "tensorflow", "image": "none", "command": ["/bin/sh", "-c", script], **(container or {})}
    made = {"replicas": replicas, "template": {"spec": {"containers": [main], "terminationGracePeriodSeconds": 1, **spec}}}
    if policy:
        made["restartPolicy"] = policy
    return made


def tfjob(name, roles, **spec):
    return {"apiVersion": "kubeflow.org/v1alpha2", "kind": "TFJob", "metadata": {"name": name},
            "spec": {"tfReplicaSpecs": roles, **spec}}


class JobCase(jobs.JobCase):
    kind, short_name = "TFJob", "tfj"
    path = "/apis/kubeflow.org/v1alpha2/namespaces/%s/tfjobs"
    seat_labels = ("tf-replica-type", "tf-replica-index")
    finished = ("Succeeded", "Failed")
    counters, restarts_field, end_field, looked_at = "tfReplicaStatuses", "restartCount", "completionTime", "lastUpdateTime"

    @staticmethod
    def broken_by_kind(job, before):
        was, suspended = before and current(before), any(c["type"] == "Suspended" for c in job["status"].get("conditions", []))
        return ["was %s and is nothing any more" % was["type"]] if was and not current(job) and not suspended else []
