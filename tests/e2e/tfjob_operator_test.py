"""The operator is killed, doubled and deposed while jobs run, and no job takes harm; and what it tells of itself.

usage: tfjob_operator_test.py TRAINYARD [unittest arguments]
"""

import cases
from cases import eventually
from tfjob_operators import OperatorCase
from tfjobs import FOREVER, role, tfjob


class Operators(OperatorCase):
    def test_that_are_killed_again_and_again_lose_nothing(self):
        names = self.several("killed", 3, 4)
        for _ in range(4):
            before = self.pods_made(*names)
            slow = self.operator("--kube-api-qps", "12")
            eventually(lambda: self.pods_made(*names) > before, "a pod to be made")
            slow.kill()
        self.operator()
        self.all_run(names, 4)
        self.open_gate("killed")
        self.ended_well(names, 4)

    def test_that_were_away_when_jobs_ended_catch_up(self):
        first = self.operator()
        names = self.several("away", 2, 2)
        self.all_run(names, 2)
        first.kill()
        self.open_gate("away")
        self.submit(tfjob("away-new", {"Worker": role("exit 0", policy="Never")}))
        for name in names:
            eventually(lambda n=name: {p["status"]["phase"] for p in self.pods_of(n).values()} == {"Succeeded"}, "its pods to end")
        self.assertEqual({self.state(name) for name in names}, {"Running"})
        self.operator()
        self.ended_well(names, 2)
        self.await_state("away-new", "Succeeded")

    def test_that_lead_give_the_lead_away_when_they_are_told_to_end(self):
        both = [self.operator("--leader-elect").await_ready() for _ in range(2)]
        leader = eventually(lambda: next((o for o in both if o.leads()), None), "one to lead")
        other = both[1 - both.index(leader)]
        self.assertFalse(other.leads())
        lease = self.cluster.get("lease", "trainyard-operator", "-n", "default")
        self.submit(tfjob("led", {"Worker": role(self.traced("led", self.behind("led")), 2, "Never")}))
        self.await_running("led", "worker-0", "worker-1")
        self.await_state("led", "Running")
        self.assertEqual(other.metrics()["trainyard_pods_created_total"], 0)
        code, took = leader.terminate()
        self.assertEqual(code, 0, leader.output())
        self.assertLess(took, 3)
        eventually(other.leads, "the other to lead", 8)  # the lease of one that was killed would be good for 15 s
        after = self.cluster.get("lease", "trainyard-operator", "-n", "default")
        self.assertNotEqual(after["spec"]["holderIdentity"], lease["spec"]["holderIdentity"])
        self.open_gate("led")
        self.await_state("led", "Succeeded")
        self.assertEqual(sorted(self.starts("led").values()), [1, 1])

    def test_that_have_nothing_to_do_end_at_once_when_told(self):
        idle = self.operator().await_ready()
        code, took = idle.terminate()
        self.assertEqual(code, 0, idle.output())
        self.assertLess(took, 3)

    def test_of_one_namespace_leave_the_others_alone(self):
        self.cluster.kubectl("create", "namespace", "elsewhere")
        self.cluster.apply(tfjob("there", {"Worker": role("exit 0", policy="Never")}), "-n", "elsewhere")
        self.submit(tfjob("here", {"Worker": role("exit 0", policy="Never")}))
        self.operator("--namespace", self.namespace)
        self.await_state("here", "Succeeded")
        self.assertNotIn("status", self.cluster.get("tfj", "there", "-n", "elsewhere"))
        self.cluster.kubectl("delete", "tfj", "there", "-n", "elsewhere")

    def test_pages_tell_prometheus_and_probes(self):
        operator = self.operator().await_ready()
        self.assertEqual(operator.ask("/healthz"), (200, "ok\n"))
        self.assertEqual(operator.ask("/readyz"), (200, "ok\n"))
        self.assertEqual(operator.ask("/nothing")[0], 404)
        self.assertEqual(operator.ask("/metrics", "POST")[0], 405)
        before = operator.metrics()
        script = '[ "$TRAINYARD_ATTEMPT" = 0 ] && exit 137; ' + self.behind("measured")
        self.submit(tfjob("measured", {"Worker": role(script, policy="ExitCode"), "PS": role(FOREVER, 2)}))
        eventually(lambda: self.state("measured") == "Running" and self.job("measured")["status"]["restartCount"] == 1, "a restart")

        def grown(name):
            return operator.metrics().get(name, 0) - before.get(name, 0)
        running, succeeded = ('trainyard_jobs{kind="TFJob",state="%s"}' % state for state in ("Running", "Succeeded"))
        eventually(lambda: grown(running) == 1, "the job to be counted")
        self.assertEqual(grown("trainyard_pods_created_total"), 4)
        self.assertEqual(grown("trainyard_services_created_total"), 3)
        self.assertEqual(grown("trainyard_pods_deleted_total"), 1)
        restarts = {name: value for name, value in operator.metrics().items() if name.startswith("trainyard_restarts_total")}
        self.assertEqual(list(restarts.values()), [1])
        for part in ('role="Worker"', 'cause="Program"'):
            self.assertIn(part, list(restarts)[0])
        self.open_gate("measured")
        self.await_state("measured", "Succeeded")
        eventually(lambda: (grown(running), grown(succeeded)) == (0, 1), "the end to be counted")
        eventually(lambda: grown("trainyard_pods_deleted_total") == 3, "the servers' end to be counted")
        after = operator.metrics()
        requests = {name: value for name, value in after.items() if name.startswith("trainyard_api_requests_total")}
        posts = sum(value for name, value in requests.items() if 'method="POST"' in name and 'code="201"' in name)
        self.assertGreaterEqual(posts, 7)
        for name in ("trainyard_plan_seconds_count", "trainyard_pass_seconds_count", "trainyard_queue_wait_seconds_count"):
            self.assertGreater(after[name], 0, name)
        self.assertEqual(after["trainyard_leading"], 1)


class TwoAtOnce(OperatorCase):
    """Without an election nobody keeps two from working; they must not harm the jobs."""

    pods_may_come_late = True

    def test_make_no_pod_twice(self):
        self.operator().await_ready()
        self.operator().await_ready()
        names = self.several("double", 5, 3)
        self.all_run(names, 3)
        self.patch(names[0], {"suspend": True})
        eventually(lambda: self.state(names[0]) == "Suspended" and self.pods_of(names[0]) == {}, "a job to be suspended")
        self.patch(names[0], {"suspend": False})
        self.all_run(names, 3)
        self.open_gate("double")
        self.ended_well(names[1:], 3)
        self.assertEqual(self.await_state(names[0], "Succeeded")["status"]["restartCount"], 1)
        self.starts(names[0])


if __name__ == "__main__":
    cases.main()
