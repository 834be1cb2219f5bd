"""AITrainingJobs for tests: how they are written, and what must always hold of their statuses."""

import jobs
from cases import eventually
from cluster import PATIENCE
from jobs import FOREVER, ROOT, current, owner, seconds, version  # also for those who import them from here
from tfjob_operators import OperatorCase

ENDS = ("Succeed", "Failed", "Timeout", "Preempted", "NodeFail")
PHASES = ("Pending", "Creating", "Running", "Restarting", "Terminating", *ENDS)


def role(script, replicas=1, policy=None, container=None, pod=None, **fields):
    """A replica spec whose container runs a script of the shell; `fields` are its own, `pod` is of the pod's spec."""
    main = {"name": "aitj-main", "image": "none", "command": ["/bin/sh", "-c", script], **(container or {})}
    spec = {"containers": [main], "terminationGracePeriodSeconds": 1, **(pod or {})}
    made = {"replicas": replicas, "template": {"spec": spec}, **fields}
    if policy:
        made["restartPolicy"] = policy
    return made


def at_first(script):
    """A script that its type's first pods alone run; what follows is for those that were made again."""
    return "case $TRAININGJOB_REPLICA_RESTARTCOUNT in 0) %s;; esac; " % script


def aijob(name, roles, annotations=None, **spec):
    return {"apiVersion": "elasticdeeplearning.ai/v1", "kind": "AITrainingJob",
            "metadata": {"name": name, **({"annotations": annotations} if annotations else {})},
            "spec": {"replicaSpecs": roles, **spec}}


class AiJobCase(jobs.JobCase):
    kind, short_name = "AITrainingJob", "aitj"
    path = "/apis/elasticdeeplearning.ai/v1/namespaces/%s/aitrainingjobs"
    seat_labels = ("TrainingJobReplicaName", "TrainingJobReplicaIndex")
    finished = ENDS
    counters, restarts_field, end_field, looked_at = "replicaStatuses", "restartTotal", "endTime", "lastProbeTime"

    @staticmethod
    def broken_by_kind(job, before):
        status, problems = job["status"], []
        held = current(job)
        if status.get("phase") not in PHASES or not held or held["type"] != status["phase"]:
            problems.append("has the phase %s, and the condition that holds is %s" % (status.get("phase"), held))
        counted = status.get("RestartCount", {})
        if sum(counted.values()) != status["restartTotal"]:
            problems.append("has %d restarts together, and each %s" % (status["restartTotal"], counted))
        if before is None:
            return problems
        for name, count in before["status"].get("RestartCount", {}).items():
            if counted.get(name, 0) < count:
                problems.append("forgot restarts of %s: %d after %d" % (name, counted.get(name, 0), count))
        began = before["status"].get("startRunningTime")
        if began and status.get("startRunningTime") != began:
            problems.append("ran first at %s, and then at %s" % (began, status.get("startRunningTime")))
        if status.get("members", {}).get("epoch", 0) < before["status"].get("members", {}).get("epoch", 0):
            problems.append("has gone back to epoch %s" % status.get("members"))
        return problems

    # ---- what is seen

    def phases(self, name):
        """All phases that the job has been in, in order."""
        seen = [current(job)["type"] for _, job in self.jobs.of(name) if current(job)]
        return [phase for i, phase in enumerate(seen) if seen[i - 1:i] != [phase]]

    def restarts(self, name):
        """How often each type was made again."""
        return (self.job(name) or {}).get("status", {}).get("RestartCount", {})

    def made(self, name):
        """How many pods each seat of the present job of this name has been given so far."""
        uid, count = self.job(name)["metadata"]["uid"], {}
        for what, pod in list(self.pods.events):
            if what == "ADDED" and owner(pod) == uid:
                count[self.seat(pod)] = count.get(self.seat(pod), 0) + 1
        return count

    def await_phase(self, name, phase, within=PATIENCE):
        return self.await_state(name, phase, within)

    def await_restarted(self, name, **counts):
        """The job Running again, with so many restarts of each type."""
        eventually(lambda: self.state(name) == "Running" and self.restarts(name) == counts,
                   "job %s to run with restarts %s" % (name, counts))
        return self.pods_of(name)

    def row(self, name):
        """What kubectl get says of it: the phase, who is ready, restarts."""
        return self.kubectl("get", "aitj", name, "--no-headers").stdout.split()[1:4]


class AiOperatorCase(AiJobCase, OperatorCase):
    """On a cluster without an operator, which tests then start."""
