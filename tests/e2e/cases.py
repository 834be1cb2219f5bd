"""What the tests of the embedded cluster share: a cluster for each class, and the same on a real API server."""

import json
import os
import sys
import time
import unittest

from cluster import Cluster, eventually  # the second for those who import it from here
from real_server import RealServer, assets

TRAINYARD = None
LONG = bool(os.environ.get("TRAINYARD_TEST_LONG"))  # the long tier: more of what only grows with time
_real = None  # one for all classes: it takes seconds to start


def shared_real_server():
    global _real
    if _real is None:
        server = RealServer()
        unittest.addModuleCleanup(server.remove)  # first: a start may fail half-way
        _real = server.start()
    return _real


class ClusterCase(unittest.TestCase):
    """All tests of a class share a cluster, with a namespace of the class's own, and use names of their own."""

    on_real_server = False
    flags = ()

    @classmethod
    def setUpClass(cls):
        if cls.on_real_server:
            if not assets():
                raise unittest.SkipTest("SKIPPED: no real kube-apiserver: set KUBEBUILDER_ASSETS to the folder that has it")
            cls.cluster = shared_real_server()
        else:
            cls.cluster = Cluster(TRAINYARD, *cls.flags)
            cls.addClassCleanup(cls.cluster.remove)
            cls.cluster.start()
        cls.namespace = "%s-%s" % (cls.__name__.lower(), os.urandom(3).hex())
        cls.cluster.kubectl("create", "namespace", cls.namespace)

    def assert_status(self, body, code, reason):
        """That `body` is the Status object of such a failure; returns it."""
        status = json.loads(body) if isinstance(body, (str, bytes)) else body
        self.assertEqual((status["kind"], status["apiVersion"], status["status"]), ("Status", "v1", "Failure"))
        self.assertEqual((status["code"], status["reason"]), (code, reason), status["message"])
        self.assertTrue(status["message"])
        return status


class OwnServerCase(ClusterCase):
    """A class that kills its cluster: a real server, which others share, is then one of its own too."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.on_real_server:
            cls.cluster = RealServer()
            cls.addClassCleanup(cls.cluster.remove)
            cls.cluster.start()
            cls.cluster.kubectl("create", "namespace", cls.namespace)


def also_on_a_real_server(case):
    """Adds the same class of tests once more, on a real API server: what they expect is what Kubernetes does."""
    name = case.__name__ + "OnARealServer"
    module = sys.modules[case.__module__]
    setattr(module, name, type(name, (case,), {"on_real_server": True, "__module__": case.__module__}))
    return case


class TimedResult(unittest.TextTestResult):
    """Prints how long each test took."""

    def startTest(self, test):
        self.begun = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        self.stream.write("(%.1f s) " % (time.monotonic() - self.begun))
        super().addSuccess(test)


def main():
    """usage: x_test.py TRAINYARD [unittest arguments]"""
    global TRAINYARD
    TRAINYARD = os.path.abspath(sys.argv.pop(1))
    # Without warnings: the Python client leaves its connections to the collector, which complains of each.
    runner = unittest.TextTestRunner(verbosity=2, warnings="ignore", resultclass=TimedResult)
    unittest.main(module="__main__", testRunner=runner)
