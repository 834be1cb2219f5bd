"""What survives when `trainyard up` is killed: nothing acknowledged is lost, and pods run on.

usage: restart_pods_test.py TRAINYARD [unittest arguments]
"""

import os
import threading
import time
import uuid

from kubernetes import client

import cases
import processes
from cases import eventually
from python_client import ApiException, config_map
from restarts import RestartCase, Writer

MARK = "TRAINYARD_TEST_MARK"
TICKS = "i=0; while :; do echo tick $i; i=$((i+1)); sleep 0.1; done"


class PodCase(RestartCase):
    def setUp(self):
        self.mark = str(uuid.uuid4())
        self.api = self.core()

    def pod(self, name, script, **spec):
        """A pod whose processes all bear this test's mark, and the pod's name."""
        container = client.V1Container(name="main", image="none", command=["/bin/sh", "-c", script], env=[
            client.V1EnvVar(name=MARK, value=self.mark), client.V1EnvVar(name="POD", value=name)])
        return client.V1Pod(metadata=client.V1ObjectMeta(name=name),
                            spec=client.V1PodSpec(containers=[container], termination_grace_period_seconds=1, **spec))

    def create(self, name, script, **spec):
        self.api.create_namespaced_pod(self.namespace, self.pod(name, script, **spec))

    def status(self, name):
        return self.api.read_namespaced_pod(name, self.namespace).status

    def running(self, name):
        statuses = self.status(name).container_statuses
        return bool(statuses and statuses[0].state.running)

    def marked(self):
        return processes.with_mark(MARK, self.mark)

    def mains(self):
        """{pod: [(pid, start)]} of the shells that are the pods' first processes."""
        found, marked = {}, self.marked()
        for pid, env in marked.items():
            # A child looks like its parent until it has become what it is to run.
            if processes.read("/proc/%d/cmdline" % pid).startswith(b"/bin/sh\0-c\0") and processes.parent(pid) not in marked:
                found.setdefault(env[b"POD"].decode(), []).append((pid, processes.started(pid)))
        return found

    def ticks(self, name):
        lines = self.api.read_namespaced_pod_log(name, self.namespace).split("\n")
        return [int(line.split()[1]) for line in lines if line.startswith("tick")]

    def assert_goes_on(self, name, before):
        """That it is the very process of before, and that its log goes on without a gap."""
        self.assertEqual(self.mains().get(name), before, name)
        eventually(lambda: self.running(name), name + " to be shown as running")
        self.assertEqual(self.status(name).container_statuses[0].restart_count, 0)
        seen = self.ticks(name)
        eventually(lambda: len(self.ticks(name)) > len(seen) + 2, "the log of " + name + " to go on")
        now = self.ticks(name)
        self.assertEqual(now, list(range(len(now))), "no line lost, none twice")

    def assert_nothing_is_left(self):
        self.assertEqual(self.marked(), {})
        self.assertEqual(processes.with_argument(self.cluster.home), {})


class Pods(PodCase):
    def test_run_on_when_the_cluster_is_killed(self):
        self.create("survivor", TICKS)
        eventually(lambda: self.running("survivor"), "the pod to run")
        before = self.mains()["survivor"]
        self.cluster.kill()
        self.assertEqual(self.mains()["survivor"], before)
        self.cluster.start()
        self.assert_goes_on("survivor", before)
        self.api.delete_namespaced_pod("survivor", self.namespace)
        eventually(lambda: not self.marked(), "the processes of a deleted pod to end")

    def test_run_on_when_the_cluster_is_stopped(self):
        self.create("calm", TICKS)
        eventually(lambda: self.running("calm"), "the pod to run")
        before = self.mains()["calm"]
        self.cluster.process.terminate()
        self.cluster.process.wait()
        self.assertEqual(self.mains()["calm"], before)
        self.cluster.start()
        self.assert_goes_on("calm", before)
        self.api.delete_namespaced_pod("calm", self.namespace)

    def test_that_end_meanwhile_are_told_with_their_exit_code(self):
        flag = os.path.join(self.cluster.home, "go-" + self.mark)
        script = "echo up; while [ ! -e %s ]; do sleep 0.02; done; echo bye; exit 7" % flag
        self.create("meanwhile", script, restart_policy="Never")
        eventually(lambda: self.running("meanwhile"), "the pod to run")
        self.cluster.kill()
        with open(flag, "w", encoding="ascii"):
            pass
        eventually(lambda: not self.marked(), "the process to end")
        self.cluster.start()
        eventually(lambda: self.status("meanwhile").phase == "Failed", "the end to be told")
        self.assertEqual(self.status("meanwhile").container_statuses[0].state.terminated.exit_code, 7)
        self.assertEqual(self.api.read_namespaced_pod_log("meanwhile", self.namespace), "up\nbye\n")

    def test_that_were_deleted_while_it_was_dying_are_deleted(self):
        self.create("condemned", "trap '' TERM; " + TICKS)
        eventually(lambda: self.running("condemned"), "the pod to run")
        self.api.delete_namespaced_pod("condemned", self.namespace, grace_period_seconds=2)
        self.cluster.restart()

        def gone():
            try:
                self.status("condemned")
            except ApiException as error:
                return error.status == 404
        eventually(gone, "the pod to go")
        self.assertEqual(self.marked(), {})


class Load(PodCase):
    """Killed while it is written to from all sides, again and again."""

    rounds = 10 if cases.LONG else 2
    most_pods = 10  # of one writer in one round

    def pod_writer(self, writer, state):
        core, i = self.core(), 0
        while not state["over"] and i < self.most_pods:
            name = "load-%d-%d-%d" % (state["round"], writer, i)
            i += 1
            try:
                core.create_namespaced_pod(self.namespace, self.pod(name, TICKS))
                state["pods"].append(name)
            except Exception:
                state["open"].append(name)
                return
            time.sleep(0.05)

    def kill_under_load(self, number):
        """(objects, pods, pods of which nobody knows, processes at the time of the kill)"""
        state = {"over": False, "round": number, "pods": [], "open": []}
        writers = [Writer(self.core(), self.namespace, "load-%d-%d" % (number, i)) for i in range(4)]
        starters = [threading.Thread(target=self.pod_writer, args=(i, state), daemon=True) for i in range(2)]
        for thread in writers + starters:
            thread.start()
        eventually(lambda: sum(len(w.stored) for w in writers) > 150 and len(state["pods"]) >= 8, "objects")
        eventually(lambda: len(set(self.mains()) & set(state["pods"])) >= 4, "pods that run")
        self.cluster.kill()
        state["over"] = True
        for writer in writers:
            writer.over = True
        for thread in writers + starters:
            thread.join()
        return writers, state["pods"], state["open"], self.mains()

    def assert_stored(self, writers):
        stored = {item.metadata.name: item.data for item in self.api.list_namespaced_config_map(self.namespace).items}
        for writer in writers:
            self.assertEqual(writer.refusals, [])
            for name, data in writer.stored.items():
                if name in writer.open:
                    self.assertIn(stored[name], (data, writer.open[name]), name)
                else:
                    self.assertEqual(stored.get(name), data, name)
            for name in writer.open.keys() - writer.stored.keys():
                self.assertIn(stored.get(name), (None, writer.open[name]), name)

    def assert_settled(self, name, before):
        status = self.status(name)
        if status.phase in ("Succeeded", "Failed"):
            self.assertTrue(status.reason or status.container_statuses[0].state.terminated, "it says why")
            self.assertNotIn(name, self.mains())
        elif name in before:
            self.assert_goes_on(name, before[name])
        else:
            eventually(lambda: self.running(name), name + " to run")
            self.assertEqual(len(self.mains()[name]), 1, "one process, not two")

    def test_nothing_acknowledged_is_lost_and_no_process_either(self):
        all_writers, pods, unknown = [], [], []
        for number in range(self.rounds):
            writers, made, opened, before = self.kill_under_load(number)
            all_writers += writers
            pods += made
            unknown += opened
            self.cluster.start()
            self.assert_stored(all_writers)
            names = {item.metadata.name for item in self.api.list_namespaced_pod(self.namespace).items}
            self.assertLessEqual(set(pods), names)
            self.assertLessEqual(names, set(pods) | set(unknown))
            for name in sorted(names):
                self.assert_settled(name, before)
            self.assertLessEqual(set(self.mains()), names, "no process without its pod")
        done = self.cluster.down()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_nothing_is_left()


class Down(PodCase):
    def setUp(self):
        super().setUp()
        if self.cluster.process.poll() is not None:
            self.cluster.start()

    def test_ends_what_hides(self):
        self.create("hider", "setsid sh -c \"trap '' TERM HUP INT; while :; do sleep 1000; done\" & (sleep 1000 &) ; sleep 1000")
        self.create("deaf", "trap '' TERM HUP INT; while :; do sleep 0.05; done")
        eventually(lambda: self.running("hider") and self.running("deaf") and len(self.marked()) >= 5, "its processes")
        done = self.cluster.down()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.cluster.process.wait(timeout=300)
        self.assert_nothing_is_left()

    def test_ends_what_a_killed_cluster_has_left(self):
        self.create("left", TICKS)
        eventually(lambda: self.running("left"), "the pod to run")
        self.cluster.kill()
        done = self.cluster.down()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_nothing_is_left()

    def test_keeps_the_objects(self):
        self.api.create_namespaced_config_map(self.namespace, config_map("kept", a="1"))
        self.assertEqual(self.cluster.down().returncode, 0)
        self.cluster.process.wait(timeout=300)
        self.cluster.start()
        self.assertEqual(self.core().read_namespaced_config_map("kept", self.namespace).data, {"a": "1"})


if __name__ == "__main__":
    cases.main()
