"""Jobs on a machine that has no time for them: slow is not lost.

Busy programs take the processors, two for each or in the long tier sixteen, while 500 jobs come at once that may not fail:
restartPolicy Never, and nodes that are lost after two seconds of silence.

usage: busy_machine_test.py TRAINYARD [unittest arguments]
"""

import json
import os
import subprocess

import cases
from cases import eventually
from tfjobs import JobCase, role, tfjob

JOBS = 500
BUSY = (16 if cases.LONG else 2) * os.cpu_count()  # programs
PATIENCE = 7200 if cases.LONG else 900  # seconds


class BusyMachine(JobCase):
    flags = ("--nodes", "24", "--node-grace", "2s")

    def load(self):
        """Until the test is over."""
        for _ in range(BUSY):
            process = subprocess.Popen(["sh", "-c", "trap 'exit 0' TERM; while kill -0 %d; do :; done" % os.getpid()],
                                       stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.terminate)

    def test_loses_no_node_and_no_job(self):
        self.load()
        names = ["busy-%d" % i for i in range(JOBS)]
        self.submit(*(tfjob(name, {"Worker": role("exit 0", 1, "Never")}) for name in names))
        eventually(lambda: all(self.state(name) in self.finished for name in names), "all jobs to end", PATIENCE)
        failed = {name: self.message(name) for name in names if self.state(name) != "Succeeded"}
        self.assertEqual(failed, {})
        disrupted = [name for name in names if self.job(name)["status"].get("restarts")]
        self.assertEqual(disrupted, [])
        events = json.loads(self.cluster.kubectl("get", "events", "-A", "-o", "json").stdout)["items"]
        self.assertEqual([event["message"] for event in events if event["reason"] == "NodeNotReady"], [])


if __name__ == "__main__":
    cases.main()
