"""The cluster goes away under jobs and their operator, and comes back.

usage: tfjob_outages_test.py TRAINYARD [unittest arguments]
"""

import os
import re
import socket

import cases
from cases import eventually
from tfjob_operators import OperatorCase
from tfjobs import FOREVER, ROOT, JobCase, role, tfjob


class CutOff(OperatorCase):
    """The API server goes away under an operator that lives on."""

    def test_amid_the_making_of_many_pods_they_go_on_where_they_were(self):
        operator = self.operator("--kube-api-qps", "15").await_ready()
        self.submit(tfjob("many", {"Worker": role(self.traced("many", self.behind("many")), 24, "Never")},
                          successPolicy="AllWorkers"))
        for enough in (3, 12):
            eventually(lambda: self.pods_made("many") >= enough, "%d pods" % enough)
            if not self.on_real_server:  # which takes its time, and what was made meanwhile is seen at once
                self.assertLess(self.pods_made("many"), 24)
            self.cluster.restart()
        self.await_running("many", *("worker-%d" % i for i in range(24)))
        self.await_state("many", "Running")
        self.assertIsNone(operator.process.poll())
        self.open_gate("many")
        self.assertEqual(self.await_state("many", "Succeeded")["status"]["restartCount"], 0)
        self.assertEqual((len(self.starts("many")), set(self.starts("many").values())), (24, {1}))

    def test_by_the_deletion_of_their_job_they_make_no_more_pods(self):
        self.operator("--kube-api-qps", "100").await_ready()
        count = 5000  # which takes a minute and a half
        self.submit(tfjob("stops", {"Worker": role(FOREVER, count, "Never", nodeSelector={"there-is": "none"})}))
        eventually(lambda: self.pods_made("stops"), "the first pods")
        self.kubectl("delete", "tfj", "stops", "--wait=false")
        self.submit(tfjob("next", {"Worker": role("exit 0", policy="Never")}))
        self.await_state("next", "Succeeded")  # whose turn comes when nothing is made for the other any more
        eventually(lambda: not any(name.startswith("stops-") for name in list(self.pods.objects)), "all its pods to be gone")
        self.assertLess(self.pods_made("stops"), count)

    def test_from_the_start_they_wait_and_say_so(self):
        self.cluster.kill()
        operator = self.operator()
        eventually(lambda: operator.ask("/readyz")[0] == 503, "it to be not ready")
        self.assertEqual(operator.ask("/healthz")[0], 200)
        self.await_reason(operator, "cannot connect to .*Connection refused")
        self.cluster.start()
        operator.await_ready()
        self.submit(tfjob("waited-for", {"Worker": role("exit 0", policy="Never")}))
        self.await_state("waited-for", "Succeeded")

    def await_reason(self, operator, reason):
        said = "trainyard: waiting: tfjobs could not be listed yet: .*" + reason
        eventually(lambda: re.search(said, operator.output()), "it to say what it waits for, and why")

    def test_at_an_address_that_swallows_connections_they_live_and_say_why(self):
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.create_connection(full.getsockname()):
            operator = self.operator("--master", "http://127.0.0.1:%d" % full.getsockname()[1])
            self.await_reason(operator, "cannot connect to .*Timeout")
            self.assertIsNone(operator.process.poll())

    def test_by_a_cluster_that_does_not_know_the_kind_they_wait_for_it(self):
        self.kubectl("delete", "tfjobs", "--all")
        self.cluster.kubectl("delete", "crd", "tfjobs.kubeflow.org")
        operator = self.operator()
        eventually(lambda: "trainyard: waiting: " in operator.output(), "it to say what it waits for")
        self.assertIn("tfjobs", operator.output())
        self.assertEqual(operator.ask("/readyz")[0], 503)
        self.prepare()
        operator.await_ready()
        type(self).jobs = self.watch("/apis/kubeflow.org/v1alpha2/namespaces/%s/tfjobs")
        self.submit(tfjob("known", {"Worker": role("exit 0", policy="Never")}))
        self.await_state("known", "Succeeded")


class InTheCluster(JobCase):
    def test_the_operator_goes_on_when_the_cluster_is_killed(self):
        self.submit(tfjob("survives", {"Worker": role(self.traced("survives", self.behind("survives")), 16, "Never"),
                                       "PS": role(self.traced("survives", FOREVER), 2)}, successPolicy="AllWorkers"))
        eventually(lambda: self.pods.objects, "the first pod")
        self.cluster.restart()
        seats = ["ps-0", "ps-1", *("worker-%d" % i for i in range(16))]
        self.await_running("survives", *seats)
        self.await_state("survives", "Running")
        self.cluster.kill()
        self.open_gate("survives")
        self.cluster.start()
        self.await_state("survives", "Succeeded")
        self.assertEqual((len(self.starts("survives")), set(self.starts("survives").values())), (18, {1}))
        self.assertEqual(self.job("survives")["status"]["restartCount"], 0)

    def test_what_the_clusters_end_cut_off_goes_on_and_nothing_is_charged_for_it(self):
        # One saves its work when it is told to go, and ends well; the other just dies.
        ways = {"saves": "trap 'exit 0' TERM; sleep 1000 & wait", "dies": FOREVER}
        names = []
        for way in ways:
            for policy in ("Always", "OnFailure", "ExitCode"):
                names.append("%s-%s" % (way, policy.lower()))
                script = "[ $TRAINYARD_ATTEMPT = 0 ] || exit 0; " + ways[way]
                self.submit(tfjob(names[-1], {"Worker": role(script, 2, policy)}, backoffLimit=0, successPolicy="AllWorkers"))
        for name in names:
            self.await_state(name, "Running")
        self.assertEqual(self.cluster.down().returncode, 0)
        self.cluster.process.wait()
        self.cluster.start()
        for name in names:
            with self.subTest(job=name):
                status = self.await_state(name, "Succeeded")["status"]
                self.assertEqual((status["restartCount"], status["restarts"]["Worker"]["disruptions"]), (0, 2))

    def test_the_definition_is_what_deploy_has(self):
        done = self.cluster.kubectl("diff", "-f", os.path.join(ROOT, "deploy", "crds"), check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)


if __name__ == "__main__":
    cases.main()
