"""What follows when a process of a TFJob ends: by exit code, by restart policy, by the limit of restarts.

usage: tfjob_restarts_test.py TRAINYARD [unittest arguments]
"""

import os
import signal
import uuid

import cases
import processes
from cases import eventually
from tfjobs import FOREVER, JobCase, current, role, tfjob

MARK = "TRAINYARD_TEST_MARK"
AGAIN = '[ "$TRAINYARD_ATTEMPT" = 0 ] || exit 0; '  # it succeeds if it was made again


def marked(mark):
    return {"env": [{"name": MARK, "value": mark}]}


class ExitCodes(JobCase):
    def restarts(self, name):
        return self.job(name)["status"].get("restarts", {}).get("Worker", {})

    def test_up_to_127_are_for_good_and_those_above_are_tried_again(self):
        codes = (0, 1, 2, 127, 128, 130, 137, 143, 255)
        self.submit(*(tfjob("exit-%d" % code, {"Worker": role(AGAIN + "exit %d" % code, policy="ExitCode")}) for code in codes))
        for code in codes:
            with self.subTest(code=code):
                name, good = "exit-%d" % code, code == 0 or code >= 128
                self.await_state(name, "Succeeded" if good else "Failed")
                status = self.job(name)["status"]
                self.assertEqual(status["restartCount"], 1 if code >= 128 else 0)
                counts = status["tfReplicaStatuses"]["Worker"]
                self.assertEqual((counts["active"], counts["succeeded"], counts["failed"]), (0, int(good), int(code != 0)))
                if code >= 128:
                    self.assertEqual(self.restarts(name)["lastCause"], "worker-0 exited %d (Error) on node-1" % code)
                    self.assertEqual(self.restarts(name)["attempts"], "0:1")
                elif code:
                    self.assertEqual(current(self.job(name))["reason"], "TFJobFailed")
                    self.assertIn("worker-0 exited %d (Error) on node-1; not restarted: " % code, self.message(name))
                    self.await_told(name, "Warning", "TFJobFailed", "exited %d" % code)

    def test_of_real_signals_are_tried_again(self):
        # $$ is $ in a container's command, as everywhere in Kubernetes.
        signals = {"INT": 130, "KILL": 137, "SEGV": 139, "TERM": 143}
        self.submit(*(tfjob("signal-" + name.lower(), {"Worker": role(AGAIN + "kill -%s $$$$; sleep 1000" % name, policy="ExitCode")})
                      for name in signals))
        for name, code in signals.items():
            with self.subTest(signal=name):
                self.await_state("signal-" + name.lower(), "Succeeded")
                self.assertEqual(self.restarts("signal-" + name.lower())["lastCause"], "worker-0 exited %d (Error) on node-1" % code)

    def test_are_told_with_the_pod_and_the_number_of_the_restart(self):
        script = 'case $HOSTNAME in *-worker-1-*) %s exit 137;; esac; %s' % (AGAIN, self.behind("told", 'echo "$TRAINYARD_ATTEMPT"'))
        self.submit(tfjob("told", {"Worker": role(script, 2, "ExitCode")}, backoffLimit=5))
        text = "worker-1 exited 137 (Error) on node-1; restart 1 of 5"
        eventually(lambda: text in self.messages("told", "Restarting"), "the condition to say so")
        self.await_told("told", "Warning", "TFJobRestarting", text)
        self.await_state("told", "Running")
        self.open_gate("told")
        self.await_state("told", "Succeeded")
        self.assertEqual(self.logs(self.pods_of("told")["worker-0"]), "0\n")
        eventually(lambda: self.kubectl("get", "tfj", "told").stdout.splitlines()[1].split()[1:4] == ["Succeeded", "2/2", "1"],
                   "the row to say so")

    def test_of_any_type_fail_the_job(self):
        self.submit(tfjob("type", {"Chief": role(FOREVER), "PS": role("exit 3", policy="ExitCode")}))
        self.await_state("type", "Failed")
        self.assertIn("ps-0 exited 3", self.message("type"))
        eventually(lambda: sorted(self.pods_of("type")) == ["ps-0"], "the chief's pod to go")

    def test_of_other_containers_do_not_undo_the_success_of_the_one_that_works(self):
        chief = role("exit 0", policy="ExitCode")
        chief["template"]["spec"]["containers"].append({"name": "sidecar", "image": "none", "command": ["/bin/sh", "-c", "exit 1"]})
        self.submit(tfjob("beside", {"Chief": chief}))
        self.await_state("beside", "Succeeded")

    def test_of_the_one_that_works_are_not_hidden_by_others_that_go_on(self):
        def beside(script, policy):
            made = role(script, policy=policy)
            made["template"]["spec"]["containers"].append({"name": "sidecar", "image": "none", "command": ["/bin/sleep", "1000"]})
            return made
        self.submit(tfjob("hidden-never", {"Worker": beside("exit 3", "Never")}),
                    tfjob("hidden-code", {"Worker": beside("exit 3", "ExitCode")}),
                    tfjob("hidden-again", {"Worker": beside(AGAIN + "exit 137", "ExitCode")}))
        for name in ("hidden-never", "hidden-code"):
            self.await_state(name, "Failed")
            self.assertIn("worker-0 exited 3 (Error) on node-1; not restarted: ", self.message(name))
            self.assertEqual(self.job(name)["status"]["tfReplicaStatuses"]["Worker"]["failed"], 1)
        self.await_state("hidden-again", "Succeeded")
        self.assertEqual(self.restarts("hidden-again")["lastCause"], "worker-0 exited 137 (Error) on node-1")

    def test_that_come_again_are_waited_after_and_the_failed_pod_stays_to_be_read(self):
        self.submit(tfjob("waits", {"Worker": role('echo "attempt $TRAINYARD_ATTEMPT"; exit 137', policy="ExitCode")}))
        eventually(lambda: self.job("waits") and self.job("waits").get("status", {}).get("restartCount") == 2, "two failures")
        pod = self.pods_of("waits")["worker-0"]
        self.assertEqual((self.state("waits"), pod["status"]["phase"]), ("Restarting", "Failed"))
        eventually(lambda: "; restart 2; waiting until " in self.message("waits"), "it to say until when")
        self.assertEqual(self.logs(pod), "attempt 1\n")
        plan = self.cluster.run("plan", "tfjob/waits", "-n", self.namespace, "--kubeconfig", self.cluster.kubeconfig)
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertRegex(plan.stdout, r"  look again in \d+\.?\d*s\n$")
        self.kubectl("delete", "tfj", "waits")


class Policies(JobCase):
    def fails_first(self, name, times):
        """A script that fails so often and then succeeds."""
        path = os.path.join(self.folder, name + ".runs")
        return "echo run >> %s; [ $(wc -l < %s) -gt %d ] || exit 3; exit 0" % (path, path, times)

    def test_never_fails_the_job_with_the_first_failure(self):
        self.submit(*(tfjob("never-%d" % code, {"Worker": role("exit %d" % code, policy="Never")}) for code in (1, 137)))
        for code in (1, 137):
            self.await_state("never-%d" % code, "Failed")
            self.assertEqual(self.message("never-%d" % code),
                             "worker-0 exited %d (Error) on node-1; not restarted: restartPolicy is Never" % code)
            self.assertEqual(self.job("never-%d" % code)["status"]["restartCount"], 0)

    def test_on_failure_and_always_have_the_kubelet_restart_and_that_is_counted(self):
        for policy in ("OnFailure", "Always"):
            name = "kubelet-" + policy.lower()
            self.submit(tfjob(name, {"Worker": role(self.fails_first(name, 2), policy=policy)}, backoffLimit=2,
                              cleanPodPolicy="None"))
        for policy in ("OnFailure", "Always"):
            with self.subTest(policy):
                name = "kubelet-" + policy.lower()
                status = self.await_state(name, "Succeeded")["status"]
                self.assertEqual(status["restartCount"], 2)
                self.assertEqual(status["restarts"]["Worker"]["count"], 2)
                self.assertEqual(status["restarts"]["Worker"]["lastCause"], "worker-0 exited 3 (Error) on node-1")
                self.assertNotIn("attempts", status["restarts"]["Worker"])
                pod = self.pods_of(name)["worker-0"]
                self.assertEqual([what for what, _ in self.pods.of(pod["metadata"]["name"])].count("ADDED"), 1)
                self.await_told(name, "Warning", "TFJobRestarting", "worker-0 exited 3")

    def test_stay_counted_when_the_pod_that_was_restarted_is_deleted(self):
        self.submit(tfjob("settled", {"Worker": role(self.fails_first("settled", 2).replace("exit 0", self.behind("settled")),
                                                     policy="OnFailure")}, backoffLimit=2))
        eventually(lambda: self.state("settled") == "Running" and self.job("settled")["status"]["restartCount"] == 2, "two restarts")
        before = self.pods_of("settled")["worker-0"]
        self.kubectl("delete", "pod", before["metadata"]["name"], "--wait=false")
        self.await_another("settled", "worker-0", before)
        self.await_state("settled", "Running")
        self.assertEqual(self.job("settled")["status"]["restartCount"], 2)
        self.open_gate("settled")
        self.assertEqual(self.await_state("settled", "Succeeded")["status"]["restarts"]["Worker"]["count"], 2)

    def test_end_when_the_limit_of_restarts_is_reached(self):
        """Whether the kubelet restarts or the operator does."""
        self.submit(tfjob("limit-kubelet", {"Worker": role("exit 3", policy="OnFailure")}, backoffLimit=2),
                    tfjob("limit-0", {"Worker": role(self.traced("limit-0", "exit 137"), policy="ExitCode")}, backoffLimit=0),
                    tfjob("limit-1", {"Worker": role(self.traced("limit-1", "exit 137"), policy="ExitCode")}, backoffLimit=1))
        for name, cause, limit in (("limit-kubelet", "worker-0 exited 3", 2), ("limit-0", "worker-0 exited 137", 0),
                                   ("limit-1", "worker-0 exited 137", 1)):
            with self.subTest(name):
                held = current(self.await_state(name, "Failed"))
                self.assertEqual(held["reason"], "BackoffLimitExceeded")
                self.assertIn(cause, held["message"])
                self.assertIn("backoffLimit is %d" % limit, held["message"])
                self.await_told(name, "Warning", "BackoffLimitExceeded", cause)
        self.assertEqual([sum(self.starts(name).values()) for name in ("limit-0", "limit-1")], [1, 2])
        eventually(lambda: self.pods_of("limit-kubelet") == {}, "the pod that the kubelet would restart to go")

    def test_do_not_count_what_ends_with_0_and_is_started_again(self):
        self.submit(tfjob("well", {"Worker": role(self.behind("well"), 1, "Never"), "PS": role(self.traced("well", "exit 0"), 1)},
                          backoffLimit=0))
        eventually(lambda: sum(self.starts("well").values()) >= 4, "three restarts")
        self.open_gate("well")
        self.assertEqual(self.await_state("well", "Succeeded")["status"]["restartCount"], 0)

    def test_count_the_restarts_of_all_types_together(self):
        once = AGAIN.replace("exit 0", FOREVER)
        self.submit(tfjob("together", {"Worker": role(once + "exit 137", policy="ExitCode"),
                                       "PS": role(once + self.behind("together", "exit 143"), policy="ExitCode")}, backoffLimit=1))
        eventually(lambda: self.state("together") == "Running" and self.job("together")["status"]["restartCount"] == 1, "one restart")
        self.open_gate("together")
        held = current(self.await_state("together", "Failed"))
        self.assertEqual(held["reason"], "BackoffLimitExceeded")
        self.assertIn("ps-0 exited 143", held["message"])


class Killed(JobCase):
    """Processes that are killed from outside."""

    def kill(self, mark):
        victims = eventually(lambda: processes.with_mark(MARK, mark), "the process to be there")
        self.assertEqual(len(victims), 1)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)

    def test_come_back_and_are_counted(self):
        """As another pod under ExitCode, as another run of its container under Always."""
        marks = {policy: str(uuid.uuid4()) for policy in ("ExitCode", "Always")}
        pods = {}
        for policy, mark in marks.items():
            name = "killed-" + policy.lower()
            self.submit(tfjob(name, {"Chief": role(self.behind("killed"), policy="Never"),
                                     "Worker": role(FOREVER, policy=policy, container=marked(mark))}, backoffLimit=1))
            pods[policy] = self.await_running(name, "chief-0", "worker-0")
            self.await_state(name, "Running")
        for mark in marks.values():
            self.kill(mark)
        self.await_another("killed-exitcode", "worker-0", pods["ExitCode"]["worker-0"])
        for policy, mark in marks.items():
            with self.subTest(policy):
                name = "killed-" + policy.lower()
                eventually(lambda: self.state(name) == "Running" and self.job(name)["status"]["restartCount"] == 1,
                           "the job to run again")
                restarts = self.job(name)["status"]["restarts"]["Worker"]
                self.assertEqual((restarts["count"], restarts["lastCause"]), (1, "worker-0 exited 137 (Error) on node-1"))
                eventually(lambda: len(processes.with_mark(MARK, mark)) == 1, "a process to be there again")
                # The kubelet may have been so fast that the job never was Restarting; it is told all the same.
                self.assertIn("worker-0 exited 137 (Error) on node-1; restart 1 of 1", self.messages(name, "Restarting"))
        self.assertEqual(self.pods_of("killed-always")["worker-0"]["metadata"]["uid"], pods["Always"]["worker-0"]["metadata"]["uid"])
        self.open_gate("killed")
        self.await_end("Succeeded", "killed-exitcode", "killed-always")
        for mark in marks.values():
            eventually(lambda m=mark: not processes.with_mark(MARK, m), "the processes to end with the job")


if __name__ == "__main__":
    cases.main()
