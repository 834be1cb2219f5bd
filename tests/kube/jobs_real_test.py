"""The acceptance suites of all kinds once more, on a real API server: what is promised does not depend on our own.

usage: jobs_real_test.py TRAINYARD PROCESS_NODES [unittest arguments]
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import aijob_autoscale_test
import aijob_bad_objects_test
import aijob_defects_test
import aijob_elastic_test
import aijob_ends_test
import aijob_faults_test
import aijob_life_test
import aijob_operator_test
import aijob_restarts_test
import cases
import kubeflow_test
import tfjob_bad_objects_test
import tfjob_ends_test
import tfjob_faults_test
import tfjob_life_test
import tfjob_operator_test
import tfjob_outages_test
import tfjob_plan_test
import tfjob_restarts_test
from jobs import JobCase
from real_cluster import RealCluster
from real_server import assets

# The operator that runs inside `trainyard up` has no part in a real cluster.
ELSEWHERE = {tfjob_outages_test.InTheCluster}
# Pods that are processes of one machine have loopback addresses, which a real server does not take as endpoints.
# And a home folder is only the embedded cluster's.
NO_ENDPOINT = "a real server takes no loopback address as an endpoint"
NOT_HERE = {"test_find_each_other_by_the_addresses_of_tf_config": NO_ENDPOINT,
            "test_find_each_other_by_the_names_that_they_are_told": NO_ENDPOINT,
            "test_with_the_network_of_their_node_still_find_names": NO_ENDPOINT,
            "test_13_names_in_variables_resolve_conditions_are_bounded_and_services_go": NO_ENDPOINT,
            "test_processes_meet_and_reduce": NO_ENDPOINT,
            "test_commands_know_the_kind": "there are no kubelets, which have the logs",
            "test_jobs_of_the_embedded_cluster_are_found_by_its_home": "there is no embedded cluster"}
PROCESS_NODES = None
_clusters = {}  # by flags; it takes seconds to start one


def cluster_for(flags):
    if flags not in _clusters:
        cluster = RealCluster(cases.TRAINYARD, PROCESS_NODES, *flags)
        unittest.addModuleCleanup(cluster.remove)  # first: a start may fail half-way
        _clusters[flags] = cluster.start()
    return _clusters[flags]


def on_a_real_server(case):
    """The class with its tests on a real server; classes of two modules may have one name."""
    stem = "".join(word.capitalize() for word in case.__module__.split("_")[:-1])

    def set_up_class(cls):
        if not assets():
            raise unittest.SkipTest("SKIPPED: no real kube-apiserver: set KUBEBUILDER_ASSETS to the folder that has it")
        cases.shared_real_server = lambda: cluster_for(cls.flags)
        super(made, cls).setUpClass()

    made = type(stem + case.__name__ + "OnARealServer", (case,),
                {"on_real_server": True, "setUpClass": classmethod(set_up_class), "__module__": __name__,
                 "logs": lambda self, pod, container=None: self.cluster.logs(pod, container)})
    for name in NOT_HERE.keys() & set(dir(case)):
        setattr(made, name, unittest.skip("SKIPPED: " + NOT_HERE[name])(getattr(case, name)))
    return made


for module in (tfjob_life_test, tfjob_restarts_test, tfjob_faults_test, tfjob_ends_test, tfjob_bad_objects_test,
               tfjob_operator_test, tfjob_outages_test, tfjob_plan_test, aijob_life_test, aijob_restarts_test, aijob_faults_test,
               aijob_ends_test, aijob_bad_objects_test, aijob_elastic_test, aijob_autoscale_test, aijob_operator_test,
               aijob_defects_test, kubeflow_test):
    for item in list(vars(module).values()):
        if isinstance(item, type) and issubclass(item, JobCase) and item.__module__ == module.__name__ and item not in ELSEWHERE:
            made_class = on_a_real_server(item)
            globals()[made_class.__name__] = made_class
del item, module, made_class


if __name__ == "__main__":
    cases.TRAINYARD = os.path.abspath(sys.argv.pop(1))
    PROCESS_NODES = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__", verbosity=2, warnings="ignore")
