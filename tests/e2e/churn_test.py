"""Objects and pods that come and go leave nothing in the cluster's memory.

The long tier writes, in each of its rounds, as many events as the server keeps.

usage: churn_test.py TRAINYARD [unittest arguments]
"""

import http.client
import json
import threading

import cases
from cases import ClusterCase, eventually
from cluster import sh
from wire import Wire

ROUNDS, PODS, MAPS, EVENTS = (12, 200, 2000, 16000) if cases.LONG else (4, 20, 200, 0)
WARM = ROUNDS // 2  # rounds after which memory must stay as it is
CLIENTS = 4
GROWTH = 1.15  # allocators are not exact


class Client:
    """One connection that is used again."""

    def __init__(self, cluster):
        wire = Wire(cluster)
        self.headers = {"Authorization": "Bearer " + wire.access["token"], "Content-Type": "application/json"}
        self.connection = http.client.HTTPSConnection(wire.host, wire.port, timeout=300, context=wire.context())

    def ask(self, method, path, body=None, kind="application/json"):
        self.connection.request(method, path, body and json.dumps(body), {**self.headers, "Content-Type": kind})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise AssertionError("%s %s: %d %s" % (method, path, answer.status, text))


class Churn(ClusterCase):
    def path(self, resource, name=""):
        return "/api/v1/namespaces/%s/%s%s" % (self.namespace, resource, name and "/" + name)

    def memory(self):
        """Resident KiB of the cluster's process."""
        with open("/proc/%d/status" % self.cluster.process.pid) as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))

    def write_events(self, client, begin, end):
        for i in range(begin, end):
            name = "event-%d" % i
            client.ask("POST", self.path("events"), {
                "metadata": {"name": name}, "reason": "Churn", "message": "one of many " * 8, "type": "Normal",
                "involvedObject": {"kind": "Pod", "name": name, "namespace": self.namespace}})

    def change_maps(self, client, begin, end):
        for i in range(begin, end):
            name = "map-%d" % i
            client.ask("POST", self.path("configmaps"), {"metadata": {"name": name}, "data": {"a": "x" * 2000}})
            client.ask("PATCH", self.path("configmaps", name), {"data": {"a": "y" * 2000}}, "application/merge-patch+json")
            client.ask("DELETE", self.path("configmaps", name))

    def run_pods(self):
        """Pods that end by themselves and are then deleted."""
        client = Client(self.cluster)
        names = ["pod-%d" % i for i in range(PODS)]
        for name in names:
            client.ask("POST", self.path("pods"), sh(name, "exit 0", restartPolicy="Never"))
        pods = lambda: self.cluster.read(self.path("pods"))["items"]
        eventually(lambda: all(pod["status"]["phase"] == "Succeeded" for pod in pods()), "the pods to end")
        client.ask("DELETE", self.path("pods"))
        eventually(lambda: not pods(), "the pods to be deleted")

    def in_parallel(self, work, count, begin=0):
        failures = []

        def part(number):
            try:
                work(Client(self.cluster), begin + count * number // CLIENTS, begin + count * (number + 1) // CLIENTS)
            except Exception as failure:  # pylint: disable=broad-except
                failures.append(failure)

        threads = [threading.Thread(target=part, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_memory_stays_as_it_is_while_objects_and_pods_come_and_go(self):
        seen = []
        for number in range(ROUNDS):
            self.in_parallel(self.write_events, EVENTS, number * EVENTS)
            self.in_parallel(self.change_maps, MAPS)
            self.run_pods()
            seen.append(self.memory())
        print("KiB after each round:", seen, flush=True)
        self.assertLess(max(seen[WARM:]), GROWTH * max(seen[:WARM]), seen)


if __name__ == "__main__":
    cases.main()
