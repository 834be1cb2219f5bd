"""TFJobs that end or pause by the clock or by their user's word, and whose status many write at once.

usage: tfjob_ends_test.py TRAINYARD [unittest arguments]
"""

import json
import subprocess
import threading

import cases
from cases import eventually
from cluster import environment
from tfjobs import FOREVER, JobCase, current, role, seconds, tfjob, version


class Timed(JobCase):
    """All at once, for it is the clock that they wait for."""

    def test_jobs_go_when_their_time_after_the_end_is_over(self):
        roles = {"Worker": role("exit 0", policy="Never"), "PS": role(FOREVER)}
        self.submit(*(tfjob("ttl-%d" % ttl, roles, ttlSecondsAfterFinished=ttl, cleanPodPolicy="None") for ttl in (0, 1, 1000)),
                    tfjob("ttl-failed", {"Worker": role("exit 1", policy="Never")}, ttlSecondsAfterFinished=1))
        for name in ("ttl-0", "ttl-1", "ttl-failed"):
            with self.subTest(name):
                eventually(lambda n=name: self.jobs.of(n) and self.job(n) is None, "job %s to be deleted" % name, 20)
                uid = self.jobs.of(name)[-1][1]["metadata"]["uid"]
                eventually(lambda u=uid: not [thing for watch in (self.pods, self.services) for thing in list(watch.objects.values())
                                              if thing["metadata"]["labels"].get("trainyard.dev/job-uid") == u],
                           "what was its own to go")
                last = [job for _, job in self.jobs.of(name) if current(job)][-1]
                self.assertEqual(current(last)["type"], "Failed" if name == "ttl-failed" else "Succeeded")
        self.await_state("ttl-1000", "Succeeded")

    def test_jobs_fail_at_their_deadline_though_nothing_else_happens(self):
        self.submit(tfjob("deadline", {"Worker": role(FOREVER), "PS": role(FOREVER)}, activeDeadlineSeconds=2),
                    tfjob("in-time", {"Worker": role("exit 0", policy="Never")}, activeDeadlineSeconds=30))
        job = self.await_state("deadline", "Failed", within=10)  # and not at the next double check, after 15 s
        self.assertEqual(current(job)["reason"], "DeadlineExceeded")
        self.assertIn("activeDeadlineSeconds: 2", current(job)["message"])
        self.assertGreaterEqual(seconds(job["status"]["completionTime"]) - seconds(job["status"]["startTime"]), 2)
        eventually(lambda: self.pods_of("deadline") == {} and self.services_of("deadline") == {}, "its pods to go")
        eventually(lambda: self.counts("deadline", "Worker")["active"] == 0, "the count to follow")
        self.await_told("deadline", "Warning", "DeadlineExceeded", "activeDeadlineSeconds")
        self.await_state("in-time", "Succeeded")


class Suspended(JobCase):
    def test_jobs_have_no_pods_and_go_on_to_their_end_when_resumed(self):
        self.submit(tfjob("pauses", {"Worker": role(self.behind("pauses"), 2, "Never"), "PS": role(FOREVER)},
                          activeDeadlineSeconds=600))
        before = self.await_running("pauses", "ps-0", "worker-0", "worker-1")
        self.await_state("pauses", "Running")
        self.patch("pauses", {"suspend": True})
        self.await_state("pauses", "Suspended")
        eventually(lambda: self.pods_of("pauses") == {} and self.services_of("pauses") == {}, "its pods and services to go")
        eventually(lambda: self.message("pauses") == "the job has no pods until suspend is false", "the message to say so")
        status = self.job("pauses")["status"]
        self.assertEqual((status["ready"], {r["active"] for r in status["tfReplicaStatuses"].values()}), ("0/3", {0}))
        self.assertEqual((status["restartCount"], status["tfReplicaStatuses"]["Worker"]["failed"]), (0, 0))
        self.patch("pauses", {"suspend": False})
        after = self.await_running("pauses", "ps-0", "worker-0", "worker-1")
        self.await_state("pauses", "Running")
        self.assertEqual({w: p["metadata"]["name"] for w, p in after.items()}, {w: p["metadata"]["name"] for w, p in before.items()})
        self.assertEqual(self.condition("pauses", "Suspended")["status"], "False")
        self.open_gate("pauses")
        self.await_state("pauses", "Succeeded")
        self.assertEqual(self.job("pauses")["status"]["restartCount"], 0)
        self.await_told("pauses", "Normal", "TFJobSuspended", "")
        self.await_told("pauses", "Normal", "TFJobResumed", "")

    def test_jobs_may_be_so_from_the_first_moment(self):
        self.submit(tfjob("later", {"Worker": role("exit 0", policy="Never")}, suspend=True, activeDeadlineSeconds=20))
        self.await_state("later", "Suspended")
        self.assertEqual((self.pods_of("later"), self.services_of("later")), ({}, {}))
        self.patch("later", {"suspend": False})
        self.await_state("later", "Succeeded")

    def test_jobs_can_be_so_and_back_before_their_pods_are_gone(self):
        self.submit(tfjob("flickers", {"Worker": role(self.traced("flickers", self.behind("flickers")), 3, "Never")}))
        self.await_running("flickers", "worker-0", "worker-1", "worker-2")
        for suspend in (True, False, True, False):
            self.patch("flickers", {"suspend": suspend})
        eventually(lambda: self.state("flickers") == "Running" and self.job("flickers")["status"]["observedGeneration"]
                   == self.job("flickers")["metadata"]["generation"], "it to run again")
        self.await_running("flickers", "worker-0", "worker-1", "worker-2")
        self.open_gate("flickers")
        self.await_state("flickers", "Succeeded")
        self.assertEqual(len(self.starts("flickers")), 3)


class Contended(JobCase):
    """Others write the same job while the operator writes its status."""

    def annotate(self, name, number, over):
        """With kubectl, as a user does; the count of what was written."""
        i = 0
        while not over.is_set():
            done = subprocess.run(self.cluster.kubectl_command("annotate", "tfj", name, "-n", self.namespace, "--overwrite",
                                                               "by-%d=%d" % (number, i)),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(), check=False)
            self.written[number] = i if done.returncode == 0 else done.stderr
            i += 1

    def patch_fast(self, name, number, over):
        """Without kubectl, a hundred times a second."""
        path, i = "/apis/kubeflow.org/v1alpha2/namespaces/%s/tfjobs/%s" % (self.namespace, name), 0
        while not over.is_set():
            code, body = self.wire.ask("PATCH", path, json.dumps({"metadata": {"annotations": {"by-%d" % number: str(i)}}}),
                                       {"Content-Type": "application/merge-patch+json"})
            self.written[number] = i if code == 200 else body
            i += 1

    def test_statuses_are_right_all_the_same(self):
        script = ('[ "$TRAINYARD_ATTEMPT" = 0 ] && case $HOSTNAME in *-worker-1-*) %s;; esac; %s'
                  % (self.behind("fail", "exit 137"), self.behind("contended")))
        self.submit(tfjob("contended", {"Worker": role(self.traced("contended", script), 3, "ExitCode")}, backoffLimit=1))
        self.written = {}
        over = threading.Event()
        threads = [threading.Thread(target=writer, args=("contended", number, over))
                   for number, writer in enumerate((self.annotate, self.annotate, self.annotate, self.patch_fast))]
        for thread in threads:
            thread.start()
        self.addCleanup(over.set)
        eventually(lambda: len(self.written) == len(threads), "all to write")
        self.await_running("contended", "worker-0", "worker-1", "worker-2")
        self.await_state("contended", "Running")
        self.open_gate("fail")
        eventually(lambda: self.state("contended") == "Running" and self.job("contended")["status"]["restartCount"] == 1,
                   "the restart")
        self.patch("contended", {"tfReplicaSpecs": {"Worker": {"replicas": 4}}})
        self.await_running("contended", "worker-0", "worker-1", "worker-2", "worker-3")
        eventually(lambda: len(self.starts("contended")) == 4, "all scripts to have begun")
        self.open_gate("contended")
        job = self.await_state("contended", "Succeeded")
        over.set()
        for thread in threads:
            thread.join()
        self.assertEqual(job["status"]["restartCount"], 1)
        self.assertEqual(job["status"]["restarts"]["Worker"]["attempts"], "1:1")
        self.assertEqual(sorted(self.starts("contended").values()), [1, 1, 1, 2])
        annotations = self.cluster.get("tfj", "contended", "-n", self.namespace)["metadata"]["annotations"]
        self.assertEqual({n: annotations.get("by-%d" % n) for n in self.written}, {n: str(i) for n, i in self.written.items()})
        versions = [version(job) for _, job in self.jobs.of("contended")]
        self.assertEqual(versions, sorted(set(versions)))


if __name__ == "__main__":
    cases.main()
