"""AITrainingJobs whose size the autoscaler chooses: they take the room that there is, and give it back.

usage: aijob_autoscale_test.py TRAINYARD [unittest arguments]
"""

import json

import cases
from aijobs import FOREVER, AiJobCase, aijob, role
from cases import eventually

ONE = {"resources": {"requests": {"cpu": "1"}}}


def pod_of(name, cpu):
    """Somebody else's pod."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [
                {"name": "main", "image": "none", "command": ["/bin/sh", "-c", FOREVER],
                 "resources": {"requests": {"cpu": str(cpu)}}}]}}


class Autoscaler(AiJobCase):
    """On 2 nodes of 10 cpus each; of these 20, 19 may be asked for."""

    flags = ("--nodes", "2", "--capacity", "cpu=10,memory=64Gi")

    def auto(self, name, least, most, tolerant=True, **more):
        return aijob(name, {"trainer": role(self.traced(name, self.behind(name)), least, edlPolicy="Auto", minReplicas=least,
                                            maxReplicas=most, container=ONE, **more)}, faultTolerant=tolerant)

    def tearDown(self):
        super().tearDown()
        self.kubectl("delete", "aitj,pods", "--all", "--now")
        eventually(lambda: not self.pods.objects, "the cluster to be free again")

    def size(self, name):
        return self.counts(name, "trainer").get("size")

    def await_sizes(self, **sizes):
        def settled():
            return all(self.size(name) == size and self.job(name)["status"].get("ready") == "%d/%d" % (size, size)
                       and self.state(name) == "Running" and len(self.pods_of(name)) == size for name, size in sizes.items())
        eventually(settled, "sizes %s" % sizes)

    def sizes_seen(self, name):
        """All sizes that were ever decided, in order."""
        seen = [job["status"]["replicaStatuses"]["trainer"]["size"] for _, job in self.jobs.of(name)
                if job.get("status", {}).get("replicaStatuses", {}).get("trainer", {}).get("size") is not None]
        return [size for i, size in enumerate(seen) if seen[i - 1:i] != [size]]

    def end(self, *names):
        for name in names:
            self.open_gate(name)
        self.await_end("Succeed", *names)
        for name in names:
            eventually(lambda: not self.pods_of(name), "the pods of %s to go" % name)

    def plan(self, *flags):
        return self.cluster.run("plan", "--autoscale", "--kubeconfig", self.cluster.kubeconfig, *flags)

    def test_fills_the_cluster_shares_it_and_gives_it_back(self):
        self.submit(self.auto("first", 1, 30))
        self.await_sizes(first=19)
        self.submit(self.auto("second", 2, 30))
        self.await_sizes(first=17, second=2)  # it makes room for what the other needs, and no more
        self.end("first")
        self.await_sizes(second=19)
        self.assertEqual(self.restarts("second"), {"trainer": 0})
        seen = self.sizes_seen("second")
        self.assertLessEqual(len(seen), 5, seen)  # it does not go to and fro
        self.end("second")
        self.assertEqual(set(self.starts("second").values()), {1})

    def test_counts_the_pods_of_others_and_makes_room_for_them(self):
        self.submit(self.auto("polite", 2, 30))
        self.await_sizes(polite=19)
        self.submit(pod_of("theirs-a", 6), pod_of("theirs-b", 6))
        for name in ("theirs-a", "theirs-b"):
            eventually(lambda: self.cluster.get("pod", name, "-n", self.namespace)["status"]["phase"] == "Running", name + " to run")
        self.await_sizes(polite=7)
        self.await_told("polite", "Normal", "TrainingJobScaling", "trainer goes from 19 to ")
        # What can never have room is not made room for.
        settled = len(self.sizes_seen("polite")) - 1
        self.submit(pod_of("giant", 11))
        self.submit(aijob("fixed", {"trainer": role("exit 0", container=ONE)}))
        self.await_phase("fixed", "Succeed")
        self.assertGreaterEqual(min(self.sizes_seen("polite")[settled:]), 6)
        self.kubectl("delete", "pod", "theirs-a", "theirs-b", "giant", "--now")
        self.await_sizes(polite=19)
        self.end("polite")

    def test_makes_room_for_a_job_that_waits_but_keeps_the_least(self):
        self.submit(self.auto("keeps", 8, 30))
        self.await_sizes(keeps=19)
        self.submit(aijob("waits", {"trainer": role(self.behind("waits"), 10, container=ONE)}))
        self.await_phase("waits", "Running")
        self.await_sizes(keeps=9)
        self.submit(aijob("too-large", {"trainer": role(FOREVER, 13, container=ONE)}))
        eventually(lambda: "pods are scheduled" in (self.message("too-large") or ""), "it to wait")
        done = self.plan()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("%s/keeps" % self.namespace, done.stdout)
        self.assertIn("%s/too-large waits for room for " % self.namespace, done.stdout)
        self.assertGreaterEqual(min(self.sizes_seen("keeps")), 8)
        self.kubectl("delete", "aitj", "too-large")
        eventually(lambda: not self.pods_of("too-large"), "it to go")
        self.end("waits", "keeps")

    def test_changes_jobs_that_bear_no_change_by_making_them_again_once(self):
        self.submit(self.auto("remade", 2, 6, tolerant=False))
        self.await_sizes(remade=6)
        self.assertEqual(self.sizes_seen("remade"), [2, 6])
        self.assertEqual(self.restarts("remade"), {"trainer": 0})
        self.assertEqual(max(self.made("remade").values()), 2)
        self.end("remade")

    def test_shows_what_it_would_do(self):
        done = self.plan()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("no job has a role that the autoscaler may resize\n", done.stdout)
        self.submit(self.auto("shown", 2, 4))
        self.await_sizes(shown=4)
        done = self.plan()
        self.assertRegex(done.stdout, r"cpu +4 +20 +20 %")
        self.assertIn("of the cpu 97 % may be asked for\n", done.stdout)
        self.assertRegex(done.stdout, r"%s/shown +trainer +4 +2 +4 +100 %% +- +it has its most" % self.namespace)
        # With less to give it would give way.
        done = self.plan("--max-load-desired", "0.15")
        self.assertRegex(done.stdout, r"%s/shown +trainer +4 +2 +4 +100 %% +3 +more cpu is asked for than there is to give" % self.namespace)
        told = json.loads(self.plan("--max-load-desired", "0.1", "-o", "json").stdout)
        self.assertEqual(told["load"]["cpu"], {"requestedMilli": 4000, "totalMilli": 20000})
        self.assertEqual([(r["now"], r["min"], r["max"], r["settled"]) for r in told["roles"]], [(4, 2, 4, True)])
        self.assertEqual([(c["from"], c["to"]) for c in told["changes"]], [(4, 2)])
        for flags in (("--max-load-desired", "2"), ("--max-load-desired", "much"), ("aitj/shown",), ("-f", "-")):
            done = self.plan(*flags)
            self.assertEqual((done.returncode, done.stdout), (2, ""), flags)
        self.end("shown")


if __name__ == "__main__":
    cases.main()
