"""Watches go on when the server is killed and started again: no event is lost, none told twice.

usage: restart_test.py TRAINYARD [unittest arguments]     (KUBEBUILDER_ASSETS: also on the real server in there)
"""

import json
import os
import subprocess
import threading
import time

from kubernetes import watch

import cases
from cases import also_on_a_real_server, eventually
from cluster import environment
from python_client import ApiException
from restarts import RestartCase, Writer


class Follower(threading.Thread):
    """Follows the objects of a namespace with the Python client, and resumes whenever the watch breaks."""

    def __init__(self, core, namespace):
        super().__init__(daemon=True)
        self.core, self.namespace = core, namespace
        self.version = core.list_namespaced_config_map(namespace).metadata.resource_version
        self.events = []  # (version, type, name)
        self.lists = 0
        self.breaks = 0
        self.over = False

    def run(self):
        while not self.over:
            try:
                for event in watch.Watch().stream(self.core.list_namespaced_config_map, self.namespace,
                                                  resource_version=self.version, timeout_seconds=60):
                    self.version = event["object"].metadata.resource_version
                    self.events.append((int(self.version), event["type"], event["object"].metadata.name))
            except ApiException as error:
                if error.status == 410:
                    self.version = self.core.list_namespaced_config_map(self.namespace).metadata.resource_version
                    self.lists += 1
            except Exception:  # whatever the client's libraries make of a broken connection
                pass
            self.breaks += 1
            time.sleep(0.02)


class JsonStream:
    """JSON documents, one behind the other, from a process's output."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment())
        self.documents = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        decoder, text = json.JSONDecoder(), ""
        while True:
            piece = os.read(self.process.stdout.fileno(), 65536).decode()
            if not piece:
                return
            text += piece
            while True:
                text = text.lstrip()
                try:
                    document, end = decoder.raw_decode(text)
                except ValueError:
                    break
                self.documents.append(document)
                text = text[end:]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()

    def events(self):
        return [(int(d["object"]["metadata"]["resourceVersion"]), d["type"], d["object"]["metadata"]["name"])
                for d in self.documents if d["type"] != "ERROR"]


@also_on_a_real_server
class Watches(RestartCase):
    def compare(self, events, writers):
        """That every acknowledged change was told, once and in order, and nothing that nobody wrote."""
        self.assertEqual([refusal for writer in writers for refusal in writer.refusals], [])
        versions = [event[0] for event in events]
        self.assertEqual(versions, sorted(set(versions)), "in order, none twice")
        acknowledged = {event for writer in writers for event in writer.acknowledged}
        self.assertEqual(acknowledged - set(events), set(), "none lost")
        unexpected = [event for event in set(events) - acknowledged if event[2] != "kube-root-ca.crt"]
        opened = {name for writer in writers for name in writer.open}
        self.assertLessEqual({event[2] for event in unexpected}, opened, "none invented")

    def test_of_the_python_client_resume(self):
        follower = Follower(self.core(), self.namespace)
        follower.start()
        writers = [Writer(self.core(), self.namespace, "python-%d" % i) for i in range(3)]
        for writer in writers:
            writer.start()
        for _ in range(2):
            seen = len(follower.events)
            eventually(lambda: len(follower.events) > seen + 100, "events")
            self.cluster.restart()
        seen = len(follower.events)
        eventually(lambda: len(follower.events) > seen + 100, "events after the restart")
        for writer in writers:
            writer.over = True
            writer.join()
        last = max(event for writer in writers for event in writer.acknowledged)
        eventually(lambda: follower.events and follower.events[-1][0] >= last[0], "the last event")
        follower.over = True
        self.assertGreaterEqual(follower.breaks, 2)
        if self.on_real_server:  # it forgets what was before its start, and one has to list again
            return
        self.assertEqual(follower.lists, 0, "nobody had to list again")
        self.compare(follower.events, writers)

    def test_of_kubectl_resume(self):
        writer = Writer(self.core(), self.namespace, "kubectl")
        first = JsonStream(self.cluster.kubectl_command("get", "configmaps", "-n", self.namespace, "-w", "--output-watch-events",
                                                        "-o", "json"))
        self.addCleanup(first.close)
        listed = len(self.core().list_namespaced_config_map(self.namespace).items)
        eventually(lambda: len(first.documents) >= listed, "what is there already")
        before = set(first.events())
        writer.start()
        eventually(lambda: len(first.documents) > listed + 50, "events")
        self.cluster.restart()
        first.thread.join()  # it ends with its connection, and has no word for what it has seen last
        seen = first.events()
        resume = max(seen)[0]
        second = JsonStream(self.cluster.kubectl_command(
            "get", "--raw", "/api/v1/namespaces/%s/configmaps?watch=true&resourceVersion=%d" % (self.namespace, resume)))
        self.addCleanup(second.close)
        eventually(lambda: len(second.documents) > (0 if self.on_real_server else 50), "events after the restart")
        writer.over = True
        writer.join()
        if self.on_real_server:
            return
        eventually(lambda: second.events()[-1][0] >= writer.acknowledged[-1][0], "the last event")
        self.compare([event for event in seen if event not in before] + second.events(), [writer])


if __name__ == "__main__":
    cases.main()
