"""What the tests that kill the cluster share."""

import os
import threading
import time

from kubernetes import client

from cases import OwnServerCase
from python_client import ApiException, config_map, connect_with


class RestartCase(OwnServerCase):
    def core(self):
        """A client that fails at once, where the usual one tries again."""
        access = self.cluster.access()
        api = connect_with(access["server"], access["ca"], token=access["token"])
        self.addCleanup(api.close)
        return client.CoreV1Api(api)


class Writer(threading.Thread):
    """Creates and changes objects until told to stop; remembers what was acknowledged and what was left open."""

    def __init__(self, core, namespace, name):
        super().__init__(daemon=True)
        self.core, self.namespace, self.name_prefix = core, namespace, name
        self.acknowledged = []  # (version, type, name)
        self.stored = {}  # name: data
        self.open = {}  # name: data; nobody knows
        self.refusals = []  # answers that are none of a server that is well
        self.over = False

    def run(self):
        i = 0
        while not self.over:
            name, data = "%s-%d" % (self.name_prefix, i), {"content": os.urandom(200).hex()}
            i += 1
            try:
                made = self.core.create_namespaced_config_map(self.namespace, config_map(name, **data))
                self.told(made, "ADDED", data)
                if i % 2:
                    made.data = data = {"content": os.urandom(200).hex(), "again": "yes"}
                    self.told(self.core.replace_namespaced_config_map(name, self.namespace, made), "MODIFIED", data)
            except ApiException as error:
                self.open[name] = data
                if error.status:
                    self.refusals.append(str(error))
            except Exception:  # whatever the client's libraries make of a broken connection
                self.open[name] = data
                time.sleep(0.02)

    def told(self, made, event, data):
        self.acknowledged.append((int(made.metadata.resource_version), event, made.metadata.name))
        self.stored[made.metadata.name] = data
